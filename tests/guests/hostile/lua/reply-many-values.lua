-- Answers with thousands of values.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for i = 1, 7000 do
        list[i] = {}
    end
    return true, unpack(list)
end
