-- Answers with a table that contains itself.
-- kind: health
-- expect: bad-reply
-- says: contains itself
function InterpretHealth(object)
    local reply = { health = true }
    reply.more = { reply }
    return reply
end
