-- Doubles a string, and does so again when memory is refused. Steps would last for minutes.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 100
local function double()
    local text = 'x'
    while true do
        text = text .. text
    end
end

function InterpretHealth(object)
    while true do
        pcall(double)
    end
end
