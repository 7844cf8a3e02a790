-- Interprets stages, secrets, status and health of a Pipeline of example.io/v1.
local RECORDS_MAX = 1e12 -- largest number of records that a cluster can report

-- The member of a table; nil if it is no table or has another type.
local function member(value, name, expected)
  local found = type(value) == "table" and value[name] or nil
  return type(found) == expected and found or nil
end

-- Calls a function with each stage and the text that it has under a name; stages without one are left out.
local function each_stage(pipeline, name, visit)
  for _, stage in ipairs(member(pipeline.spec, "stages", "table") or {}) do
    local text = member(stage, name, "string")
    if text ~= nil and text ~= "" then
      visit(text, stage)
    end
  end
end

function InterpretHealth(observedObj)
  local phase = member(observedObj.status, "phase", "string")
  if phase == "Running" or phase == "Done" then
    return { health = "Healthy", reason = phase }
  elseif phase == "Failed" then
    return { health = "Unhealthy", reason = phase }
  end
  return { health = "Unknown", reason = "UnknownPhase" }
end

function GetComponents(desiredObj)
  local components, seen = {}, {}
  each_stage(desiredObj, "name", function(name, stage)
    if not seen[name] then
      seen[name] = true
      local workers = member(stage, "workers", "number")
      if workers == nil or workers % 1 ~= 0 then
        workers = 1
      end
      table.insert(components, { name = name, replicas = math.min(math.max(workers, 0), 2 ^ 31 - 1) })
    end
  end)
  return components
end

function GetDependencies(desiredObj)
  local dependencies = {}
  local namespace = member(desiredObj.metadata, "namespace", "string") or ""
  each_stage(desiredObj, "secret", function(name)
    table.insert(dependencies, { apiVersion = "v1", kind = "Secret", namespace = namespace, name = name })
  end)
  return dependencies
end

function ReflectStatus(observedObj)
  local records = member(observedObj.status, "records", "number")
  if records ~= nil and records % 1 ~= 0 then
    records = nil
  end
  return { phase = member(observedObj.status, "phase", "string"), records = records }
end

function AggregateStatus(desiredObj, statusItems)
  local records, failed, done = 0, false, #statusItems > 0
  for _, item in ipairs(statusItems) do
    local count, phase = member(item.status, "records", "number") or 0, member(item.status, "phase", "string")
    records = records + math.floor(math.min(math.max(count, 0), RECORDS_MAX))
    failed = failed or phase == "Failed"
    done = done and phase == "Done"
  end
  desiredObj.status = { phase = failed and "Failed" or done and "Done" or "Running", records = records }
  return desiredObj
end
