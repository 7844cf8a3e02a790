-- Lowers a long text without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 19 do
        text = text .. text
    end
    while true do
        text:lower()
    end
end
