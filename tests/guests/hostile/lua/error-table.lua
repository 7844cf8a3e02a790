-- Fails with a table.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error({ code = 1, message = 'x' })
end
