-- Makes each step as long as it can be.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local list = {}
    for i = 1, 100000 do
        list[i] = i
    end
    while true do
        table.insert(list, 1, 0)
        table.remove(list, 1)
    end
end
