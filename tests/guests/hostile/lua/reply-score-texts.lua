-- Answers with texts for scores.
-- kind: score
-- expect: bad-reply
function Score(binding, clusters, now)
    return { '1', '2', '3' }
end
