-- Changes a taint with a key of thousands of characters.
-- kind: cluster-taint
-- expect: bad-reply
function ClusterTaint(cluster, now)
    local text = 'a'
    for i = 1, 16 do
        text = text .. text
    end
    return { { add = { key = text, value = '', effect = text } } }
end
