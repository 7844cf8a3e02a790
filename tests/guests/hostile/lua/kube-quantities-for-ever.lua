-- Adds thousands of quantities for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 5000 do
        list[i] = '1m'
    end
    while true do
        require('kube').resourceAdd(unpack(list))
    end
end
