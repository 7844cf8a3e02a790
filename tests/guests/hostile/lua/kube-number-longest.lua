-- Reads the longest quantity that there may be.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    return require('kube').getResourceQuantity('0.0000000000000000000000000000000000000000000000000000000000010') ~= nil
end
