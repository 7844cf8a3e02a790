-- Recurses with more arguments in each call.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local function again(...)
        return again(1, ...)
    end
    return again()
end
