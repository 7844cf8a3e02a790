-- Adds more quantities than it may.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local list = {}
    for i = 1, 20000 do
        list[i] = '1m'
    end
    return require('kube').resourceAdd(unpack(list)) ~= nil
end
