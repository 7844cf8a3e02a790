-- Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported.
local kube = require("kube")
local resource = type(config) == "table" and config.resource or "cpu"

-- The amount of the resource in a list; 0 if it is absent or no quantity, which is an error of the library.
local function amount(list)
  local is_quantity, found = pcall(kube.getResourceQuantity, (list or {})[resource])
  return is_quantity and found or 0
end

function Score(binding, clusters, now)
  local scores = {}
  for i, cluster in ipairs(clusters) do
    local summary = cluster.status.resourceSummary or {}
    local all = amount(summary.allocatable)
    local free = all - amount(summary.allocated) - amount(summary.allocating)
    scores[i] = all > 0 and math.min(math.max(math.floor(100 * free / all), 0), 100) or 0
  end
  return scores
end
