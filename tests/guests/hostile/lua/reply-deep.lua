-- Answers with a table that is nested deeply.
-- kind: health
-- expect: bad-reply
-- says: nested deeper than
function InterpretHealth(object)
    local reply = {}
    for i = 1, 10000 do
        reply = { health = reply }
    end
    return reply
end
