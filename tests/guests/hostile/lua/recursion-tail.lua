-- Recurses without end where other Lua machines reuse the frame.
-- kind: health
-- expect: trap
-- says: stack overflow
function InterpretHealth(object)
    local function deeper()
        return deeper()
    end
    return deeper()
end
