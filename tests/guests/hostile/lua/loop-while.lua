-- Never comes back.
-- kind: health
-- expect: out-of-fuel
-- says: used up its 200000 steps
function InterpretHealth(object)
    while true do
    end
end
