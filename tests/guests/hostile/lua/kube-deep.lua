-- Hands the module a table that is nested deeply.
-- kind: health
-- expect: trap
-- says: nested deeper than
function InterpretHealth(object)
    local template = {}
    for i = 1, 5000 do
        template = { spec = template }
    end
    return require('kube').accuratePodRequirements(template) ~= nil
end
