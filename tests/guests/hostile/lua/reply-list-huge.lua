-- Answers with a hundred thousand members.
-- kind: health
-- expect: bad-reply
-- says: larger than
function InterpretHealth(object)
    local reply = { health = true, more = {} }
    for i = 1, 100000 do
        reply.more[i] = i
    end
    return reply
end
