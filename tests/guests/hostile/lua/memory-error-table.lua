-- Fails with a table of megabytes.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local list = {}
    for i = 1, 100000 do
        list[i] = i
    end
    error(list)
end
