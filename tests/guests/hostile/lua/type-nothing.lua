-- Takes the type of no value at all.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return type()
end
