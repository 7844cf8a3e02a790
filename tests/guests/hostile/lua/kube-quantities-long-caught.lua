-- Adds long quantities for ever and catches the errors.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = '9'
    for i = 1, 17 do
        text = text .. text
    end
    while true do
        pcall(require('kube').resourceAdd, text, text, text)
    end
end
