-- Reads a number of a million digits without end.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local text = '9'
    for i = 1, 19 do
        text = text .. text
    end
    while true do
        tonumber(text)
    end
end
