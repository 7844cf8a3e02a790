-- Takes the bytes of a long text all at once.
-- kind: health
-- expect: trap
-- says: string slice too long
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 19 do
        text = text .. text
    end
    return select('#', text:byte(1, -1)) > 0
end
