-- Adds thousands of long quantities in one call.
-- kind: health
-- expect: trap
-- says: a quantity has at most 63
function InterpretHealth(object)
    local text = '9'
    for i = 1, 17 do
        text = text .. text
    end
    local list = {}
    for i = 1, 3000 do
        list[i] = text
    end
    return require('kube').resourceAdd(unpack(list)) ~= nil
end
