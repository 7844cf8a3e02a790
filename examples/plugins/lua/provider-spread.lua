-- Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any.
function Score(binding, clusters, now)
  local replicas = {}
  for _, target in ipairs(binding.spec.clusters or {}) do
    replicas[target.name] = target.replicas or 0
  end
  local sums, total = {}, 0
  for _, cluster in ipairs(clusters) do
    local provider, count = cluster.spec.provider or "", replicas[cluster.name] or 0
    sums[provider] = (sums[provider] or 0) + count
    total = total + count
  end
  local scores = {}
  for i, cluster in ipairs(clusters) do
    local sum = sums[cluster.spec.provider or ""]
    scores[i] = total > 0 and 100 - math.floor(100 * sum / total) or 100
  end
  return scores
end
