-- Iterates over what never ends.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    for _ in function() return 1 end do
    end
    return true
end
