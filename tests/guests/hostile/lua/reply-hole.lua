-- Leaves a hole in a list.
-- kind: filter
-- expect: bad-reply
function Filter(binding, clusters, now)
    return { [2] = true, [3] = true }
end
