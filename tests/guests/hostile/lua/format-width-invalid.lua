-- Formats with a width that is too large.
-- kind: health
-- expect: trap
-- says: invalid
function InterpretHealth(object)
    return string.format('%100d', 1)
end
