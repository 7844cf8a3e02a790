-- Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0.
function Score(binding, clusters, now)
  local prices = type(config) == "table" and config.prices or {}
  local cheapest
  for _, price in pairs(prices) do
    cheapest = (cheapest == nil or price < cheapest) and price or cheapest
  end
  local scores = {}
  for i, cluster in ipairs(clusters) do
    local price = prices[cluster.spec.region or ""]
    scores[i] = price and math.floor(100 * cheapest / price) or 0
  end
  return scores
end
