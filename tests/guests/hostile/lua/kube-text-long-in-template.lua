-- Hands the module a template with a long text.
-- kind: health
-- expect: trap
-- says: larger than
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 17 do
        text = text .. text
    end
    return require('kube').accuratePodRequirements({ spec = { nodeName = text } }) ~= nil
end
