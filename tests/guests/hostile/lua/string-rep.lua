-- Asks for a string of a gigabyte.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return #string.rep('x', 1e9) > 0
end
