function InterpretHealth(observedObj)
    local status, spec = observedObj.status, observedObj.spec
    if status == nil or observedObj.metadata.generation ~= status.observedGeneration then
        return { health = false, reason = 'NotObserved', message = 'the controller has not seen the latest spec' }
    end
    local wanted = spec.replicas or 1
    if (status.updatedReplicas or 0) < wanted then
        return { health = false, reason = 'RollingOut', message = 'updated ' .. (status.updatedReplicas or 0) }
    end
    if (status.replicas or 0) > status.updatedReplicas or (status.availableReplicas or 0) < status.updatedReplicas then
        return { health = false, reason = 'RollingOut', message = 'available ' .. (status.availableReplicas or 0) }
    end
    for _, condition in ipairs(status.conditions or {}) do
        if condition.type == 'Available' and condition.status ~= 'True' then
            return { health = false, reason = condition.reason, message = condition.message }
        end
    end
    return { health = true, reason = 'RolledOut' }
end
