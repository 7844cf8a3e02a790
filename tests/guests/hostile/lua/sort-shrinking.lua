-- Empties the list while it is sorted.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local list = {}
    for i = 1, 100 do
        list[i] = -i
    end
    table.sort(list, function(a, b)
        for i = 1, 100 do
            list[i] = nil
        end
        return a < b
    end)
    return true
end
