-- Wants more replicas than there can be.
-- kind: replicas
-- expect: bad-reply
function GetReplicas(object)
    return 1e18
end
