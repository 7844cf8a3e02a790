-- Looks for a border in every place without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 12 do
        text = text .. text
    end
    while true do
        text:match('%f[%d]%d.-%f[%d]')
    end
end
