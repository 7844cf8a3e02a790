-- Takes thousands of bytes without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 13 do
        text = text .. text
    end
    while true do
        text:byte(1, 7000)
    end
end
