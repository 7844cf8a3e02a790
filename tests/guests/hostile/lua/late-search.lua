-- Searches until the time is over.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 14 do
        text = text .. text
    end
    pcall(function()
        while true do
            text:find(text .. 'b', 1, true)
        end
    end)
    return true
end
