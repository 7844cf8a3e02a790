-- Recurses without end through three functions.
-- kind: health
-- expect: trap
-- says: stack overflow
function InterpretHealth(object)
    local a, b, c
    function a() return 1 + b() end
    function b() return 1 + c() end
    function c() return 1 + a() end
    return a() == 0
end
