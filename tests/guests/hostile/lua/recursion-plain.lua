-- Recurses without end.
-- kind: health
-- expect: trap
-- says: stack overflow
function InterpretHealth(object)
    local function deeper(n)
        return 1 + deeper(n + 1)
    end
    return deeper(1) == 0
end
