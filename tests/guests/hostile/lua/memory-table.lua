-- Fills a table.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local list = {}
    for i = 1, 1e9 do
        list[i] = { i }
    end
    return true
end
