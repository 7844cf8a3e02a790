-- Interprets replicas and health of a custom resource, here a Game of example.io/v1.

-- The member of a table; nil if it is no table. Objects come as member clusters report them, in any shape.
local function member(value, name)
  if type(value) == "table" then
    return value[name]
  end
  return nil
end

function InterpretHealth(observedObj)
  local phase = member(observedObj.status, "phase")
  if phase == nil then
    return { health = "Unknown", reason = "NoPhase" }
  end
  if phase == "Running" then
    return { health = "Healthy", reason = "Running" }
  end
  return { health = "Unhealthy", reason = "NotRunning", message = "its phase is " .. tostring(phase) }
end

function GetReplicas(desiredObj)
  local rooms = member(desiredObj.spec, "rooms")
  if type(rooms) ~= "number" or rooms < 0 then
    rooms = 0
  end
  return rooms
end

function ReviseReplica(desiredObj, desiredReplica)
  if type(desiredObj.spec) ~= "table" or #desiredObj.spec > 0 then
    desiredObj.spec = {}
  end
  desiredObj.spec.rooms = desiredReplica
  return desiredObj
end
