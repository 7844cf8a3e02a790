-- Looks at the stack.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return debug.info(1, "f") ~= nil
end
