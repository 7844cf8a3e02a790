-- Replaces the table of modules.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    package.preload = nil
    package.loaded = 5
    return require('kube')
end
