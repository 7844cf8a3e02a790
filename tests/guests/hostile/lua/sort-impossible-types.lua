-- Sorts values that have no order.
-- kind: health
-- expect: trap
-- says: compare
function InterpretHealth(object)
    local list = { 1, 'x', {}, true }
    table.sort(list)
    return true
end
