-- Adds and removes a taint in one change.
-- kind: cluster-taint
-- expect: bad-reply
function ClusterTaint(cluster, now)
    local taint = { key = 'a', effect = 'NoExecute' }
    return { { add = taint, remove = taint } }
end
