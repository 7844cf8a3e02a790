-- Reports a StatefulSet as healthy while a share of its replicas is ready.
local percent = type(config) == "table" and config.percent or 100

-- The whole number in a table, from 0 to the largest number of replicas; the default if there is none.
local function count(value, name, default)
  local found = type(value) == "table" and value[name] or nil
  if type(found) ~= "number" or found % 1 ~= 0 then
    found = default
  end
  return math.min(math.max(found, 0), 2 ^ 31 - 1)
end

function InterpretHealth(observedObj)
  local desired = count(observedObj.spec, "replicas", 1)
  local ready = count(observedObj.status, "readyReplicas", 0)
  if desired == 0 then
    return { health = "Healthy", reason = "NoReplicas", message = "" }
  end
  local needed = math.ceil(percent * desired / 100)
  local message = string.format("%d of %d replicas are ready, %d are needed", ready, desired, needed)
  if ready >= needed then
    return { health = "Healthy", reason = "EnoughReplicas", message = message }
  end
  return { health = "Unhealthy", reason = "TooFewReplicas", message = message }
end
