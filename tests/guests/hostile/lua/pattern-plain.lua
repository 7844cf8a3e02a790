-- Searches for a long text in a long text.
-- kind: health
-- expect: trap
-- says: pattern is too long
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 17 do
        text = text .. text
    end
    return text:find(text .. 'b', 1, true) == nil
end
