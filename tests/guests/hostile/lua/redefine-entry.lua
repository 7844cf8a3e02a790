-- Replaces its own function while it runs.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    InterpretHealth = function()
        return false
    end
    return true
end
