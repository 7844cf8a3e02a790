-- Fails with nothing.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error(nil)
end
