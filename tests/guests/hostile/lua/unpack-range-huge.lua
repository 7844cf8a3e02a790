-- Unpacks ten million elements of an empty list.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return unpack({}, 1, 10000000)
end
