-- Adds a quantity with a huge exponent.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local fine, sum = pcall(require('kube').resourceAdd, '1e999999999', '1')
    return not fine or #sum < 100
end
