-- Scores clusters by the label `price`: 100 for a price of 0; 0 for a price of 50 or more, or without the label.
function Score(binding, clusters, now)
  local scores = {}
  for index, cluster in ipairs(clusters) do
    local labels = cluster.labels or {}
    local price = tonumber(labels.price) or 50
    scores[index] = math.max(0, 100 - 2 * price)
  end
  return scores
end
