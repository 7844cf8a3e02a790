-- Looks for the first of a hundred thousand removed members without end.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local list = {}
    for i = 1, 50000 do
        list['k' .. i] = i
    end
    for i = 1, 50000 do
        list['k' .. i] = nil
    end
    while true do
        next(list)
    end
end
