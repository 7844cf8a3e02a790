-- Joins a short list of long strings.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local text, list = 'x', {}
    for i = 1, 18 do
        text = text .. text
    end
    for i = 1, 1000 do
        list[i] = text
    end
    return #table.concat(list) > 0
end
