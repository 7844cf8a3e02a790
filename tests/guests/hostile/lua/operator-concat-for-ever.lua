-- Joins long texts with an operator without end.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 14 do
        text = text .. text
    end
    while true do
        local joined = text .. 'x'
    end
end
