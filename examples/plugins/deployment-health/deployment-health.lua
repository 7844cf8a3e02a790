-- Health of Deployments, by the rules built into the host.

local function type_name(value)
    local kind = type(value)
    if kind ~= "table" then
        return "a " .. kind
    elseif type(next(value)) == "number" then
        return "a list"
    end
    return "an object"
end

-- Returns the integer at object[parent][name], or nil. The second result describes a field of the wrong type.
local function integer(object, parent, name)
    local map = object[parent]
    if map == nil then
        return nil
    elseif type(map) ~= "table" or type(next(map)) == "number" then
        return nil, parent .. " is " .. type_name(map) .. ", not an object"
    end
    local value = map[name]
    if value ~= nil and (type(value) ~= "number" or value % 1 ~= 0) then
        return nil, parent .. "." .. name .. " is " .. type_name(value) .. ", not an integer"
    end
    return value
end

local FIELDS = {
    { "spec", "replicas" },
    { "status", "updatedReplicas" },
    { "status", "availableReplicas" },
    { "metadata", "generation" },
    { "status", "observedGeneration" },
}

function InterpretHealth(observedObj)
    local values = {}
    for index, field in ipairs(FIELDS) do
        local value, problem = integer(observedObj, field[1], field[2])
        if problem then
            return { health = "Unknown", reason = "MalformedObject", message = problem }
        end
        values[index] = value
    end
    local desired, updated, available = values[1], values[2] or 0, values[3] or 0
    local generation, seen = values[4] or 0, values[5] or 0

    if seen ~= generation then
        local message = string.format("the status is about generation %d, not %d", seen, generation)
        return { health = "Unhealthy", reason = "GenerationNotObserved", message = message }
    elseif desired and updated < desired then
        local message = string.format("%d of %d replicas are updated", updated, desired)
        return { health = "Unhealthy", reason = "ReplicasNotUpdated", message = message }
    end
    local message = string.format("%d of %d replicas are available", available, updated)
    if available < updated then
        return { health = "Unhealthy", reason = "ReplicasNotAvailable", message = message }
    end
    return { health = "Healthy", reason = "ReplicasAvailable", message = message }
end
