-- Asks for the time at the top level, where a script that is being loaded has none.
-- kind: health
-- expect: denied
-- at: load
-- says: the current time is not available
local loaded = os.time()

function InterpretHealth(object)
    return loaded > 0
end
