-- Puts its argument into itself.
-- kind: health
-- expect: bad-reply
-- says: contains itself
function InterpretHealth(object)
    object.metadata.object = object
    object.health = object
    return object
end
