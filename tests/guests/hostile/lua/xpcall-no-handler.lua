-- Handles an error with no function.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    xpcall(error, nil, 'x')
    xpcall(error)
    return true
end
