-- Scores infinitely well.
-- kind: score
-- expect: bad-reply
function Score(binding, clusters, now)
    local scores = {}
    for i = 1, #clusters do
        scores[i] = math.huge
    end
    return scores
end
