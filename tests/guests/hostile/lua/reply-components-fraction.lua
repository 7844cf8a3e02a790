-- Wants half a replica.
-- kind: components
-- expect: bad-reply
-- says: 0.5 as replicas
function GetComponents(object)
    return { { name = 'web', replicas = 0.5 } }
end
