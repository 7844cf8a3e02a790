-- Keeps many long strings that differ.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local text, kept = 'x', {}
    for i = 1, 18 do
        text = text .. text
    end
    for i = 1, 1000 do
        kept[i] = string.upper(text .. i)
    end
    return true
end
