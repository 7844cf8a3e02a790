-- Replaces the variables of a library function.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    setfenv(require, {})
    return true
end
