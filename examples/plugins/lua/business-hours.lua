-- Holds evictions in business hours, Monday to Friday in UTC.
function EvictionCheck(binding, task, observed, now)
  local settings = type(config) == "table" and config or {}
  local open, close = settings.open or 8, settings.close or 18
  local day, second = math.floor(now / 86400), now % 86400
  -- 1970 began on a Thursday.
  local is_workday = (day + 3) % 7 < 5
  if not is_workday or second < open * 3600 or second >= close * 3600 then
    return { verdict = "release", reason = "OutOfHours", message = "" }
  end
  return {
    verdict = "hold",
    reason = "BusinessHours",
    message = string.format("evictions wait until %02d:00 UTC", close),
    recheckAfterSeconds = close * 3600 - second,
  }
end
