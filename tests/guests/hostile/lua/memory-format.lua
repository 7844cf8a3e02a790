-- Formats long strings into one.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 18 do
        text = text .. text
    end
    local values, layout = {}, ''
    for i = 1, 100 do
        values[i] = text
        layout = layout .. '%s'
    end
    return #string.format(layout, unpack(values)) > 0
end
