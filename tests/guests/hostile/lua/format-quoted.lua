-- Quotes long texts of control characters without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = '\0\n\r'
    for i = 1, 14 do
        text = text .. text
    end
    while true do
        string.format('%q', text)
    end
end
