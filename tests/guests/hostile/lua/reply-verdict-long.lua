-- Returns a verdict that is long and none.
-- kind: eviction-check
-- expect: bad-reply
-- says: EvictionCheck returned
function EvictionCheck(binding, task, observed, now)
    local text = 'a'
    for i = 1, 15 do
        text = text .. text
    end
    return text
end
