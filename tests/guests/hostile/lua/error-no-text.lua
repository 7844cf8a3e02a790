-- Raises an error that is not UTF-8.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error('\255\254\0\128')
end
