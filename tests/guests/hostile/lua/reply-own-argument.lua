-- Answers with its argument.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return object
end
