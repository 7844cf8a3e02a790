-- Calls each function of the module without arguments.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, called in pairs(require('kube')) do
        if not pcall(called) then
            caught = caught + 1
        end
    end
    return caught == 3
end
