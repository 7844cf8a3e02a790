-- Starts a process.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return os.execute('true')
end
