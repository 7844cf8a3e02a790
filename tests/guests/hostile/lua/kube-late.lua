-- Adds quantities until the time is over, and answers all the same.
-- kind: health
-- expect: deadline
-- wall-clock-ms: 50
function InterpretHealth(object)
    local list = {}
    for i = 1, 5000 do
        list[i] = '1m'
    end
    pcall(function()
        while true do
            require('kube').resourceAdd(unpack(list))
        end
    end)
    return true
end
