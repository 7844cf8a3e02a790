-- Hands the module a refusal.
-- kind: health
-- expect: trap
-- says: string expected, got
function InterpretHealth(object)
    local refusal = select(2, pcall(load, 'return 1'))
    return require('kube').resourceAdd(refusal) ~= nil
end
