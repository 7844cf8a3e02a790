-- Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1.
local kube = require("kube")
local CPU_MAX = 1000000 -- largest processor time of a room in cores

-- The member of a table; nil if it is no table. Objects come as member clusters report them, in any shape.
local function member(value, name)
  if type(value) == "table" then
    return value[name]
  end
  return nil
end

local function rooms(server)
  local found = member(server.spec, "rooms")
  if type(found) ~= "number" or found % 1 ~= 0 then
    return nil
  end
  return math.min(math.max(found, 0), 2 ^ 31 - 1)
end

local function with_rooms(server, count)
  if type(server.spec) ~= "table" or #server.spec > 0 then
    server.spec = {}
  end
  server.spec.rooms = count
  return server
end

function InterpretHealth(observedObj)
  local phase = member(observedObj.status, "phase")
  if type(phase) ~= "string" then
    return { health = "Unknown", reason = "NoPhase" }
  end
  if phase == "Running" then
    return { health = "Healthy", reason = "Running" }
  end
  return { health = "Unhealthy", reason = "NotRunning", message = "its phase is " .. phase }
end

function GetReplicas(desiredObj)
  local requirements
  -- A text that is no quantity is an error of the library.
  local is_quantity, cores = pcall(kube.getResourceQuantity, member(desiredObj.spec, "roomCpu"))
  if is_quantity and cores > 0 then
    local milli = math.ceil(math.min(cores, CPU_MAX) * 1000)
    requirements = { resourceRequest = { cpu = string.format("%dm", milli) } }
  end
  return rooms(desiredObj) or 0, requirements
end

function ReviseReplica(desiredObj, desiredReplica)
  return with_rooms(desiredObj, desiredReplica)
end

function Retain(desiredObj, observedObj)
  local count = rooms(observedObj)
  if member(observedObj.spec, "autoscaled") == true and count ~= nil then
    return with_rooms(desiredObj, count)
  end
  return desiredObj
end
