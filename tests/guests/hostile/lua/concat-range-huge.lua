-- Joins a billion elements of an empty list.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return table.concat({}, '', 1, 1000000000)
end
