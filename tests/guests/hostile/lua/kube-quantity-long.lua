-- Adds a quantity of a hundred thousand digits.
-- kind: health
-- expect: trap
-- says: a quantity has at most 63
function InterpretHealth(object)
    local digits = '9'
    for i = 1, 17 do
        digits = digits .. digits
    end
    return require('kube').resourceAdd(digits, '1') == '9223372036854775807'
end
