-- Searches for a long text for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 14 do
        text = text .. text
    end
    while true do
        text:find(text .. 'b', 1, true)
    end
end
