-- Writes to indexes that do not exist.
-- kind: health
-- expect: trap
-- says: NaN
function InterpretHealth(object)
    local list = {}
    list[0 / 0] = 1
    return true
end
