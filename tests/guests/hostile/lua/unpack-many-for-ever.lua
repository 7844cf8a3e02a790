-- Unpacks a long list without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 60000 do
        list[i] = i
    end
    while true do
        unpack(list)
    end
end
