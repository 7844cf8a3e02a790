-- Scores with what is no number.
-- kind: score
-- expect: bad-reply
function Score(binding, clusters, now)
    local scores = {}
    for i = 1, #clusters do
        scores[i] = 0 / 0
    end
    return scores
end
