-- Wants as many replicas as is no number.
-- kind: replicas
-- expect: bad-reply
function GetReplicas(object)
    return 0 / 0
end
