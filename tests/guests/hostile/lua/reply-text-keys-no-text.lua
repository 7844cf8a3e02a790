-- Answers with names that are no texts.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return { ['\255'] = 1, ['\254'] = 2, health = 5 }
end
