-- Makes texts of thousands of bytes without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 7000 do
        list[i] = i % 256
    end
    while true do
        string.char(unpack(list))
    end
end
