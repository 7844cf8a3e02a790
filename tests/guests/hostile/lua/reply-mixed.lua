-- Answers with a list that has names.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return { true, health = true }
end
