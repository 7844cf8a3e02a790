-- Fails with the words of a limit.
-- kind: health
-- expect: trap
-- says: used up its 200000 steps
function InterpretHealth(object)
    error('used up its 200000 steps', 0)
end
