-- Taints without a key.
-- kind: cluster-taint
-- expect: bad-reply
function ClusterTaint(cluster, now)
    return { { add = { key = '', effect = 'NoExecute' } } }
end
