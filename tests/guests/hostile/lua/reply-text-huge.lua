-- Answers with a reason of a megabyte.
-- kind: health
-- expect: bad-reply
-- says: larger than
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 20 do
        text = text .. text
    end
    return { health = true, reason = text }
end
