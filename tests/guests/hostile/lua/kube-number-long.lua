-- Reads a quantity of a megabyte.
-- kind: health
-- expect: trap
-- says: a quantity has at most 63
function InterpretHealth(object)
    local text = '1'
    for i = 1, 20 do
        text = text .. text
    end
    return require('kube').getResourceQuantity(text) > 0
end
