-- Hands the module a table with a hundred thousand members.
-- kind: health
-- expect: trap
-- says: larger than
function InterpretHealth(object)
    local template = {}
    for i = 1, 20000 do
        template['key' .. i] = i
    end
    return require('kube').accuratePodRequirements({ spec = template }) ~= nil
end
