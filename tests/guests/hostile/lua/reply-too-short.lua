-- Leaves a cluster out.
-- kind: filter
-- expect: bad-reply
function Filter(binding, clusters, now)
    return { true }
end
