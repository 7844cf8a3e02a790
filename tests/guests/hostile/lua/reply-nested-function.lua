-- Hides a function in the answer.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return { health = true, more = { { print } } }
end
