-- Reports the health of a cert-manager Certificate from its conditions.

-- The member of a table; nil if it is no table or has another type.
local function member(value, name, expected)
  local found = type(value) == "table" and value[name] or nil
  return type(found) == expected and found or nil
end

function InterpretHealth(observedObj)
  local conditions = member(observedObj.status, "conditions", "table") or {}
  local function find(name)
    for _, condition in ipairs(conditions) do
      if member(condition, "type", "string") == name then
        return condition
      end
    end
  end
  local ready = find("Ready")
  if ready == nil then
    return { health = "Unknown", reason = "NotObserved", message = "there is no condition Ready" }
  end
  local generation = member(observedObj.metadata, "generation", "number") or 0
  local seen = member(ready, "observedGeneration", "number") or generation
  if seen < generation then
    local message = string.format("the condition is about generation %d of %d", seen, generation)
    return { health = "Unknown", reason = "NotObserved", message = message }
  end
  local status, message = member(ready, "status", "string"), member(ready, "message", "string") or ""
  if status == "True" then
    return { health = "Healthy", reason = "Ready", message = message }
  elseif status ~= "False" then
    return { health = "Unknown", reason = "ReadyUnknown", message = message }
  end
  local issuing = find("Issuing")
  if member(issuing, "status", "string") == "True" then
    return { health = "Unknown", reason = "Issuing", message = member(issuing, "message", "string") or "" }
  end
  return { health = "Unhealthy", reason = "NotReady", message = message }
end
