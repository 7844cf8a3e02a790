-- Scores clusters by the label `price`: 100 for what is free, 0 for what costs 50 or more, or has no price.
function Score(binding, clusters, now)
  local scores = {}
  for index, cluster in ipairs(clusters) do
    local labels = cluster.labels or {}
    local price = tonumber(labels.price) or 50
    scores[index] = math.max(0, 100 - 2 * price)
  end
  return scores
end
