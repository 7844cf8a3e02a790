-- Asks for a date in a long layout for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = '%c'
    for i = 1, 14 do
        text = text .. text
    end
    while true do
        pcall(os.date, text)
    end
end
