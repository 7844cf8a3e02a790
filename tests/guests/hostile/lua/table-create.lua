-- Asks for a table of a gigabyte.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return #table.create(2 ^ 26, 0) > 0
end
