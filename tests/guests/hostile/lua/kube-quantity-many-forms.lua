-- Reads quantities in odd forms.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local kube = require('kube')
    local forms = { '', '-', '+', '.', 'e', '1e', '1e+', '1e99999999999999999999', '--1', '1..1', '0x10', 'NaN', 'Infinity', '1KiKi', '\0', ' 1', '1 ', '1E-9999', '9223372036854775808', '-9223372036854775809' }
    for _, form in ipairs(forms) do
        local fine, sum = pcall(kube.resourceAdd, form, '1')
        if fine and #sum > 100 then
            return false
        end
        pcall(kube.getResourceQuantity, form)
    end
    return true
end
