-- Taints a cluster whose condition Ready keeps changing, and removes the taint when it has been stable for a while.
local KEY, EFFECT = "example.io/flapping", "NoSchedule"
local settings = type(config) == "table" and config or {}
local changes, window = settings.changes or 3, settings.windowSeconds or 600

-- The seconds of a time such as 2026-07-01T12:30:00Z since the Unix epoch; nil if there is none.
local function seconds(time)
  local pattern = "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"
  local year, month, day, hour, min, sec = string.match(time or "", pattern)
  return year and os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec })
end

function ClusterTaint(cluster, now)
  local recent, is_ready, is_tainted = 0, false, false
  for i, change in ipairs((cluster.conditionHistory or {}).Ready or {}) do
    local since = seconds(change.since)
    -- The first entry is the start of the history.
    if i > 1 and since and now - since < window then
      recent = recent + 1
    end
  end
  for _, condition in ipairs(cluster.status.conditions or {}) do
    if condition.type == "Ready" then
      is_ready = condition.status == "True"
      break
    end
  end
  for _, taint in ipairs(cluster.spec.taints or {}) do
    is_tainted = is_tainted or taint.key == KEY
  end
  if not is_tainted and recent >= changes then
    local message = string.format("the condition Ready has changed %d times in %d s", recent, window)
    return { { add = { key = KEY, effect = EFFECT }, reason = "Flapping", message = message } }
  elseif is_tainted and is_ready and recent == 0 then
    local message = string.format("the condition Ready has not changed in %d s", window)
    return { { remove = { key = KEY, effect = EFFECT }, reason = "Stable", message = message } }
  end
  return {}
end
