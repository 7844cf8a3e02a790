-- Prefers clusters of one region.
local REGION = "eu-west"

function Score(binding, clusters, now)
  local scores = {}
  for i, cluster in ipairs(clusters) do
    scores[i] = cluster.spec.region == REGION and 100 or 0
  end
  return scores
end
