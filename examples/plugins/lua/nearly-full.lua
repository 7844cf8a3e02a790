-- Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again.
local kube = require("kube")
local KEY, EFFECT = "example.io/nearly-full", "PreferNoSchedule"
local settings = type(config) == "table" and config or {}
local add_at, remove_below = settings.addAtPercent or 90, settings.removeBelowPercent or 75

-- The number of pods in a list; 0 if it is absent or no quantity, which is an error of the library.
local function pods(list)
  local is_quantity, found = pcall(kube.getResourceQuantity, (list or {}).pods)
  return is_quantity and found or 0
end

function ClusterTaint(cluster, now)
  local summary = cluster.status.resourceSummary or {}
  local allocatable, allocated = pods(summary.allocatable), pods(summary.allocated)
  if allocatable <= 0 then
    return {}
  end
  local used = math.floor(math.min(100 * math.max(allocated, 0) / allocatable, 999))
  local message = string.format("%d %% of the pods are in use", used)
  local is_tainted = false
  for _, taint in ipairs(cluster.spec.taints or {}) do
    is_tainted = is_tainted or taint.key == KEY
  end
  if not is_tainted and used >= add_at then
    return { { add = { key = KEY, effect = EFFECT }, reason = "NearlyFull", message = message } }
  elseif is_tainted and used < remove_below then
    return { { remove = { key = KEY, effect = EFFECT }, reason = "RoomForPods", message = message } }
  end
  return {}
end
