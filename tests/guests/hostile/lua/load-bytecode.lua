-- Runs bytes as if they were compiled.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return loadstring('\0\1\2\3')()
end
