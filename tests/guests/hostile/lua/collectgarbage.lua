-- Stops the collector.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    collectgarbage('stop')
    return true
end
