-- Answers with a text that says yes.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return 'true'
end
