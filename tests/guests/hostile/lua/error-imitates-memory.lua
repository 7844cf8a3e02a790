-- Fails with the words of the machine.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error('not enough memory', 0)
end
