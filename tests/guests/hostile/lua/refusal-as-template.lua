-- Hands the module a template with a refusal in it.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local refusal = select(2, pcall(load, 'return 1'))
    return require('kube').accuratePodRequirements({ spec = { containers = refusal } }) ~= nil
end
