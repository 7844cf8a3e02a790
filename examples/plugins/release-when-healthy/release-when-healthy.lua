-- Releases an old copy when every target cluster reports the workload as healthy.
-- Same rule as the built-in ResourceHealth.

local function hold(reason, message)
    return { verdict = "hold", reason = reason, message = message }
end

function EvictionCheck(binding, task, observed, now)
    local generation = binding.generation or 0
    local seen = binding.status and binding.status.schedulerObservedGeneration or 0
    if seen ~= generation then
        local message = string.format("the scheduler has seen generation %d of %d", seen, generation)
        return hold("SchedulePending", message)
    end
    local targets = binding.spec.clusters or {}
    if #targets == 0 then
        return hold("NoReplacement", "the workload is scheduled to no cluster")
    end
    local health = {}
    for _, report in ipairs(observed) do
        -- If a cluster has two reports, the first one counts.
        if health[report.clusterName] == nil then
            health[report.clusterName] = report.health or "no health yet"
        end
    end
    local lacking = {}
    for _, target in ipairs(targets) do
        local state = health[target.name] or "no status yet"
        if state ~= "Healthy" then
            table.insert(lacking, target.name .. ": " .. state)
        end
    end
    if #lacking > 0 then
        return hold("ReplacementNotHealthy", table.concat(lacking, ", "))
    end
    local message = string.format("%d of %d target clusters report Healthy", #targets, #targets)
    return { verdict = "release", reason = "ReplacementHealthy", message = message }
end
