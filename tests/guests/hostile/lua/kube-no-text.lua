-- Hands the module bytes that are no text.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local kube = require('kube')
    local bytes = '\255\0\254'
    local fine = pcall(kube.resourceAdd, bytes) or pcall(kube.getResourceQuantity, bytes)
    pcall(kube.getPodDependencies, { spec = { nodeName = bytes, [bytes] = bytes } }, bytes)
    pcall(kube.accuratePodRequirements, { spec = { priorityClassName = bytes } })
    return not fine
end
