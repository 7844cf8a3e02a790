-- Opens a file.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return io.open('/etc/passwd') ~= nil
end
