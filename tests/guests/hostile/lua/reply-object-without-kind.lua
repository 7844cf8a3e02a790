-- Revises the kind away.
-- kind: revise
-- expect: bad-reply
function ReviseReplica(object, replicas)
    object.kind = nil
    return object
end
