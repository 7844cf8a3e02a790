-- Gives the module a namespace of a megabyte.
-- kind: health
-- expect: trap
-- says: a namespace has at most 253
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 20 do
        text = text .. text
    end
    return require('kube').getPodDependencies({ spec = {} }, text) ~= nil
end
