-- Walks on from a key that is not there.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    next({}, 'no such key')
    return true
end
