-- Counts its calls in a closure.
-- kind: health
-- expect: healthy
local calls = 0

function InterpretHealth(object)
    calls = calls + 1
    keep = InterpretHealth
    return calls == 1
end
