-- Answers with infinite scores.
-- kind: score
-- expect: bad-reply
function Score(binding, clusters, now)
    return { 1 / 0, -1 / 0, 0 / 0 }
end
