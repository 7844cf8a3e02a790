-- Makes the matcher try everything.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 16 do
        text = text .. text
    end
    return text:find('.-.-.-.-.-.-.-b') == nil
end
