-- Prints no value at all.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return tostring()
end
