-- Removes the table of modules.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    package = nil
    return require('kube')
end
