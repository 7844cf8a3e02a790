-- Joins a long list of empty texts without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 60000 do
        list[i] = ''
    end
    while true do
        table.concat(list)
    end
end
