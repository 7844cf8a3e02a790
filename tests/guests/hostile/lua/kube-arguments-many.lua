-- Calls each function of the module with thousands of arguments, without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 5000 do
        list[i] = {}
    end
    while true do
        for _, called in pairs(require('kube')) do
            pcall(called, unpack(list))
        end
    end
end
