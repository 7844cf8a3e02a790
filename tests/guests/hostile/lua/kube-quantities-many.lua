-- Adds thousands of quantities in one call.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for i = 1, 5000 do
        list[i] = '1m'
    end
    return require('kube').resourceAdd(unpack(list)) == '5'
end
