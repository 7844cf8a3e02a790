-- Replaces what the module kube offers.
-- kind: health
-- expect: healthy
local was = require('kube').resourceAdd('1', '2')

function InterpretHealth(object)
    local kube = require('kube')
    kube.resourceAdd = function()
        return 'hijacked'
    end
    package.loaded.kube = {}
    package.preload.kube = nil
    return was == '3'
end
