-- Answers with thousands of changes.
-- kind: cluster-taint
-- expect: bad-reply
-- says: larger than
function ClusterTaint(cluster, now)
    local list = {}
    for i = 1, 5000 do
        list[i] = { add = { key = 'a', effect = 'NoExecute', value = 'v' .. i } }
    end
    return list
end
