-- Counts to infinity.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    for i = 1, math.huge do
    end
    return true
end
