-- Answers with a small table that stands for a huge one.
-- kind: health
-- expect: bad-reply
-- says: larger than
function InterpretHealth(object)
    local reply = { true }
    for i = 1, 60 do
        reply = { reply, reply }
    end
    return { health = true, more = reply }
end
