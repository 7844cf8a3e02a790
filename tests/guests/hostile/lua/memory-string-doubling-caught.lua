-- Doubles a string, and does so again when memory is refused.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    while true do
        pcall(function()
            local text = 'x'
            while true do
                text = text .. text
            end
        end)
    end
end
