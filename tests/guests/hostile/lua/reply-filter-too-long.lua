-- Answers for more clusters than there are.
-- kind: filter
-- expect: bad-reply
-- says: 5000 for 3 clusters
function Filter(binding, clusters, now)
    local list = {}
    for i = 1, 5000 do
        list[i] = true
    end
    return list
end
