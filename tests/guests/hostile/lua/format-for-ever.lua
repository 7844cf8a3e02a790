-- Formats a long text for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 18 do
        text = text .. text
    end
    while true do
        string.format('%s', text)
    end
end
