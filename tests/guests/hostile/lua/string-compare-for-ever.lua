-- Compares long texts with a common start without end.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 19 do
        text = text .. text
    end
    local left, right = text .. 'a', text .. 'b'
    local count = 0
    while true do
        if left < right then
            count = count + 1
        end
    end
end
