-- Takes the maximum of thousands of numbers without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 7000 do
        list[i] = i
    end
    while true do
        math.max(unpack(list))
    end
end
