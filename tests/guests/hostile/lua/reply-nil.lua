-- Forgets to answer.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    if object == nil then
        return true
    end
end
