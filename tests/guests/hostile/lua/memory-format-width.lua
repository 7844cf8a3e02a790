-- Asks for a number a hundred million digits wide.
-- kind: health
-- expect: trap
-- says: invalid format
function InterpretHealth(object)
    return #string.format('%99999999d', 1) > 0
end
