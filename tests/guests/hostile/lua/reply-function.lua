-- Answers with a function.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return InterpretHealth
end
