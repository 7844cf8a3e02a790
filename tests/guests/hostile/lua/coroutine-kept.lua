-- Keeps a coroutine for the next call.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    kept = kept or coroutine.create(function()
        while true do
            coroutine.yield()
        end
    end)
    return coroutine.resume(kept)
end
