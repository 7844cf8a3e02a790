-- Asks for a buffer of a gigabyte.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return buffer.len(buffer.create(2 ^ 30)) > 0
end
