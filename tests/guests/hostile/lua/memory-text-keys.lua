-- Keeps members with names of their own.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local list = {}
    for i = 1, 1000000000 do
        list['a name that is long enough to count ' .. i] = true
    end
end
