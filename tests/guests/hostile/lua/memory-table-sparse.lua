-- Asks for a table with one far index.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    list[2 ^ 52] = 1
    list[-2 ^ 52] = 1
    list[1e300] = 1
    pcall(table.insert, list, 2 ^ 31, 1)
    return #list == 0
end
