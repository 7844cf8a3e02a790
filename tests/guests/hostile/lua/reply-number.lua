-- Answers with a number.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return 1
end
