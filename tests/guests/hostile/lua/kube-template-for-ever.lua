-- Hands the module a large table for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local containers = {}
    for i = 1, 500 do
        containers[i] = { name = 'c' .. i, resources = { requests = { cpu = '100m' } } }
    end
    while true do
        require('kube').accuratePodRequirements({ spec = { containers = containers } })
    end
end
