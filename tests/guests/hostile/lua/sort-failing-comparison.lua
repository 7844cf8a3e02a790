-- Fails in the comparison of a sort, caught without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = { 3, 2, 1 }
    while true do
        pcall(table.sort, list, error)
    end
end
