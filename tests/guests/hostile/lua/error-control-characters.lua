-- Fails with a message that would clear a terminal.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error('\27[2J\0\r\n\255')
end
