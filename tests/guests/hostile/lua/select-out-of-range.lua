-- Selects arguments that do not exist.
-- kind: health
-- expect: trap
-- says: select
function InterpretHealth(object)
    return select(-1000000000, 1, 2)
end
