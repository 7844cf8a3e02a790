-- Counts thousands of arguments without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = {}
    for i = 1, 5000 do
        list[i] = i
    end
    while true do
        select('#', select(4000, unpack(list)))
    end
end
