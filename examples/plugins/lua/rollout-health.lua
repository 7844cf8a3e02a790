-- Reports the health of an Argo Rollout from the phase that its controller writes.

-- The member of a table; nil if it is no table or has another type.
local function member(value, name, expected)
  local found = type(value) == "table" and value[name] or nil
  return type(found) == expected and found or nil
end

function InterpretHealth(observedObj)
  local generation = member(observedObj.metadata, "generation", "number") or 0
  -- The controller writes the number as a text.
  local seen = member(observedObj.status, "observedGeneration", "string") or "0"
  if seen ~= string.format("%d", generation) then
    local message = string.format("the controller has seen generation %s of %d", seen, generation)
    return { health = "Unknown", reason = "NotObserved", message = message }
  end
  local phase = member(observedObj.status, "phase", "string")
  local message = member(observedObj.status, "message", "string") or ""
  if phase == "Healthy" or phase == "Paused" then
    return { health = "Healthy", reason = phase, message = message }
  elseif phase == "Degraded" or phase == "Progressing" then
    return { health = "Unhealthy", reason = phase, message = message }
  end
  return { health = "Unknown", reason = "UnknownPhase", message = message }
end
