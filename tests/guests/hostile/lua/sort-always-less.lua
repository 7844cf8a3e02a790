-- Sorts with a comparison that is always true.
-- kind: health
-- expect: trap
-- says: invalid order function
function InterpretHealth(object)
    local list = {}
    for i = 1, 1000 do
        list[i] = i
    end
    table.sort(list, function()
        return true
    end)
    return true
end
