-- Raises a long error and catches it without end.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 18 do
        text = text .. text
    end
    while true do
        pcall(error, text)
    end
end
