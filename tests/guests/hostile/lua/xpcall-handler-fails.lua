-- Fails in the handler of a failure.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local fine = xpcall(error, function()
        error(error)
    end)
    return not fine
end
