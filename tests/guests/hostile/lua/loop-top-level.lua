-- Does not get past its own top level.
-- kind: health
-- expect: out-of-fuel
-- at: load
-- says: used up its 200000 steps
while true do
end

function InterpretHealth(object)
    return true
end
