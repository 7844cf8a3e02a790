-- Hands the module its own functions and tables.
-- kind: health
-- expect: trap
-- says: string expected
function InterpretHealth(object)
    local kube = require('kube')
    return kube.resourceAdd(kube.resourceAdd, kube) ~= nil
end
