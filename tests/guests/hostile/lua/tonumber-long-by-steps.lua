-- Reads a long number, which costs as many steps as it takes.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = '9'
    for i = 1, 19 do
        text = text .. text
    end
    while true do
        tonumber(text)
    end
end
