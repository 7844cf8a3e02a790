-- Doubles a string.
-- kind: health
-- expect: memory
-- says: used up its memory
function InterpretHealth(object)
    local text = 'x'
    while true do
        text = text .. text
    end
end
