-- Asks for the dependencies of a large template for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local volumes = {}
    for i = 1, 500 do
        volumes[i] = { name = 'v' .. i, configMap = { name = 'm' .. i } }
    end
    while true do
        require('kube').getPodDependencies({ spec = { volumes = volumes } }, 'x')
    end
end
