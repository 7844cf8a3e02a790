-- Holds an eviction until the old copy reports a complete backup, or until that takes too long.
local RECHECK = 30 -- seconds between two checks
local max_seconds = type(config) == "table" and config.maxSeconds or 3600

-- The text at value.backup.phase; nil if it is absent.
local function phase_of(value)
  for _, name in ipairs({ "backup", "phase" }) do
    value = type(value) == "table" and value[name] or nil
  end
  return type(value) == "string" and value or nil
end

-- The seconds of a time such as 2026-07-01T12:30:00Z since the Unix epoch; nil if there is none.
local function seconds(time)
  local pattern = "^(%d+)-(%d+)-(%d+)T(%d+):(%d+):(%d+)"
  local year, month, day, hour, min, sec = string.match(time or "", pattern)
  return year and os.time({ year = year, month = month, day = day, hour = hour, min = min, sec = sec })
end

function EvictionCheck(binding, task, observed, now)
  local from, phase = task.fromCluster, nil
  for _, report in ipairs(observed) do
    if report.clusterName == from then
      phase = phase or phase_of(report.status)
    end
  end
  if phase == "Completed" then
    return { verdict = "release", reason = "BackupCompleted", message = "" }
  end
  local message = string.format("the backup in %s is %s", from, phase or "missing")
  local since = seconds(task.creationTimestamp)
  local left = since and max_seconds - (now - since) or RECHECK
  if left <= 0 then
    message = string.format("%s after %d s", message, max_seconds)
    return { verdict = "release", reason = "BackupOverdue", message = message }
  end
  local recheck = math.min(left, RECHECK)
  return { verdict = "hold", reason = "BackupPending", message = message, recheckAfterSeconds = recheck }
end
