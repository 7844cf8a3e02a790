-- Moves a long list by one place without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 30000 do
        list[i] = i
    end
    while true do
        table.insert(list, 1, 0)
        table.remove(list, 1)
    end
end
