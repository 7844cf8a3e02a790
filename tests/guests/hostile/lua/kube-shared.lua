-- Hands the module a small table that stands for a huge one.
-- kind: health
-- expect: trap
-- says: larger than
function InterpretHealth(object)
    local list = { 1 }
    for i = 1, 60 do
        list = { list, list }
    end
    return require('kube').getPodDependencies({ spec = list }, 'x') ~= nil
end
