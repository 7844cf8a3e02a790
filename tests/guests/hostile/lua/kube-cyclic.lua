-- Hands the module a table that contains itself.
-- kind: health
-- expect: trap
-- says: contains itself
function InterpretHealth(object)
    local template = { spec = {} }
    template.spec.containers = { template }
    return require('kube').accuratePodRequirements(template) ~= nil
end
