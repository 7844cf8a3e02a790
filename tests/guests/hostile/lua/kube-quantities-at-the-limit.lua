-- Adds as many quantities as it may.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for i = 1, 7900 do
        list[i] = '1'
    end
    return require('kube').resourceAdd(unpack(list)) == '7900'
end
