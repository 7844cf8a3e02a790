-- Compiles text.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return load('return true')()
end
