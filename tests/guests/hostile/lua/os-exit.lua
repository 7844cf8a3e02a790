-- Ends the process.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    os.exit(1)
    return true
end
