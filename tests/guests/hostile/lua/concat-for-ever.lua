-- Joins long texts for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 13 do
        text = text .. text
    end
    local list = { text, text, text, text, text, text, text, text }
    while true do
        table.concat(list)
    end
end
