-- Fails an assertion with a table that contains itself.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local message = {}
    message.message = message
    assert(nil, message)
    return true
end
