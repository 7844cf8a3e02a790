-- Recurses with more arguments each time.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local function deeper(...)
        return deeper(1, ...)
    end
    return deeper()
end
