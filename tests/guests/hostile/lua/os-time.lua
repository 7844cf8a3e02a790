-- Asks for the time in a call that has none.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return os.time() > 0
end
