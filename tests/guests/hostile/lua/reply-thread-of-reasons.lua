-- Gives a reason that is a table.
-- kind: health
-- expect: bad-reply
-- says: reason
function InterpretHealth(object)
    return { health = 'Healthy', reason = { 'x' } }
end
