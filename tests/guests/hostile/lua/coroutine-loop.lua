-- Loops in a coroutine.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    return coroutine.wrap(function()
        while true do
        end
    end)()
end
