-- Leaves megabytes in globals, call after call.
-- kind: health
-- expect: healthy
kept = {}

for i = 1, 30000 do
    kept[i] = i
end

function InterpretHealth(object)
    for i = 1, 100000 do
        kept[#kept + 1] = i
    end
    return #kept == 130000
end
