-- Formats values that are missing.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return string.format('%d %d %d', 1)
end
