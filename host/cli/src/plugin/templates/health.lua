-- Reports the health of a Deployment.

-- The member of a table; nil if it is no table. Objects come as member clusters report them, in any shape.
local function member(value, name)
  if type(value) == "table" then
    return value[name]
  end
  return nil
end

function InterpretHealth(observedObj)
  local desired = member(observedObj.spec, "replicas")
  if type(desired) ~= "number" then
    return { health = "Unknown", reason = "NoReplicas", message = "spec.replicas is missing or not a number" }
  end
  local ready = member(observedObj.status, "readyReplicas")
  if type(ready) ~= "number" then
    ready = 0
  end
  local message = string.format("%s of %s replicas are ready", ready, desired)
  if ready >= desired then
    return { health = "Healthy", reason = "Ready", message = message }
  end
  return { health = "Unhealthy", reason = "NotReady", message = message }
end
