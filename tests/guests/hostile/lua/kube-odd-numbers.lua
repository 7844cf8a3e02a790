-- Hands the module numbers that JSON does not have.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local kube = require('kube')
    for _, number in ipairs({ 0 / 0, 1 / 0, -1 / 0, 1e308, -0 }) do
        pcall(kube.resourceAdd, number)
        pcall(kube.getResourceQuantity, number)
        pcall(kube.getPodDependencies, { spec = { volumes = number } }, number)
        pcall(kube.accuratePodRequirements, { spec = { containers = { { resources = { limits = { cpu = number } } } } } })
    end
    return kube.resourceAdd('1', '1') == '2'
end
