-- Unpacks a hundred million values.
-- kind: health
-- expect: trap
-- says: too many results to unpack
function InterpretHealth(object)
    return select('#', unpack({}, 1, 1e8)) > 0
end
