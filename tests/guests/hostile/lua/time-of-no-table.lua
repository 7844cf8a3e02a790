-- Makes a time of a number.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return os.time(5)
end
