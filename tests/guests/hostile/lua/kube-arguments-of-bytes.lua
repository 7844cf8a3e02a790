-- Adds as many numbers as a long text has bytes.
-- kind: health
-- expect: trap
-- says: at most 8192
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 17 do
        text = text .. text
    end
    return require('kube').resourceAdd(text:byte(1, -1)) ~= nil
end
