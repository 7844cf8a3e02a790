-- Joins a thousand elements with a long separator.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 16 do
        text = text .. text
    end
    local list = {}
    for i = 1, 1000 do
        list[i] = i
    end
    return table.concat(list, text)
end
