-- Adds to the list in the comparison of its sort.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for i = 1, 100 do
        list[i] = -i
    end
    pcall(table.sort, list, function(left, right)
        list[#list + 1] = 0
        return left < right
    end)
    return #list < 100000
end
