-- Asks for the variables of its caller.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return getfenv(2).secret
end
