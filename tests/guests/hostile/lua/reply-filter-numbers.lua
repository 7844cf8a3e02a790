-- Answers with numbers for verdicts.
-- kind: filter
-- expect: bad-reply
function Filter(binding, clusters, now)
    return { 1, 2, 3 }
end
