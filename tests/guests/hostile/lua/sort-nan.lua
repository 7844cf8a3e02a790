-- Sorts a list in which nothing is equal to itself.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for i = 1, 1000 do
        list[i] = i % 3 == 0 and i or 0 / 0
    end
    pcall(table.sort, list)
    pcall(table.sort, list, function(left, right)
        return not (left < right)
    end)
    return #list == 1000
end
