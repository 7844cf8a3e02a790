-- Holds an eviction until other healthy copies run in a majority of the zones.
local zones = type(config) == "table" and config.zones or {}

function EvictionCheck(binding, task, observed, now)
  local known, all = {}, 0
  for _, zone in pairs(zones) do
    all = all + (known[zone] and 0 or 1)
    known[zone] = true
  end
  if all == 0 then
    return "abstain"
  end
  local healthy, found = {}, 0
  for _, report in ipairs(observed) do
    local zone = zones[report.clusterName]
    if zone and report.clusterName ~= task.fromCluster and report.health == "Healthy" and not healthy[zone] then
      healthy[zone] = true
      found = found + 1
    end
  end
  local needed = math.floor(all / 2) + 1
  local message = string.format("healthy copies in %d of %d zones", found, all)
  if found >= needed then
    return { verdict = "release", reason = "Quorum", message = message }
  end
  message = string.format("%s, %d are needed", message, needed)
  return { verdict = "hold", reason = "NoQuorum", message = message }
end
