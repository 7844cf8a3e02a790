-- Retains nothing of the object.
-- kind: retain
-- expect: bad-reply
-- says: an object without kind
function Retain(desired, observed)
    return {}
end
