-- Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer.
local KEY = "example.io/unstable"
local settings = type(config) == "table" and config or {}
local add_after, remove_after = settings.addAfterSeconds or 60, settings.removeAfterSeconds or 300

-- The seconds of a time such as 2026-07-01T12:30:00Z since the Unix epoch; nil if there is none.
local function seconds(time)
  local pattern = "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"
  local year, month, day, hour, min, sec = string.match(time or "", pattern)
  return year and os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec })
end

function ClusterTaint(cluster, now)
  local ready
  for _, condition in ipairs(cluster.status.conditions or {}) do
    if condition.type == "Ready" then
      ready = ready or condition
    end
  end
  local since = ready and seconds(ready.lastTransitionTime)
  if since == nil then
    return {}
  end
  local is_tainted = false
  for _, taint in ipairs(cluster.spec.taints or {}) do
    is_tainted = is_tainted or taint.key == KEY
  end
  local age, is_ready = now - since, ready.status == "True"
  if not is_ready and not is_tainted and age >= add_after then
    local message = string.format("not ready for %d s, the limit is %d s", age, add_after)
    return { { add = { key = KEY, effect = "NoSchedule" }, reason = "NotReadyForLong", message = message } }
  elseif is_ready and is_tainted and age >= remove_after then
    local message = string.format("ready for %d s, the limit is %d s", age, remove_after)
    return { { remove = { key = KEY, effect = "NoSchedule" }, reason = "ReadyForLong", message = message } }
  end
  return {}
end
