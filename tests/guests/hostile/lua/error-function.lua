-- Fails with a function.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error(error)
end
