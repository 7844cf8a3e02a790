-- Loops in a loader of its own.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    package.preload.endless = function()
        while true do
        end
    end
    require('endless')
    return true
end
