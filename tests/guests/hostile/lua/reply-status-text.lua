-- Reflects a text.
-- kind: reflect-status
-- expect: bad-reply
function ReflectStatus(object)
    return 'fine'
end
