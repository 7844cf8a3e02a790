-- Takes a hundred thousand bytes without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 17 do
        text = text .. text
    end
    while true do
        text:byte(1, -1)
    end
end
