-- Asks to be asked again in the past.
-- kind: eviction-check
-- expect: bad-reply
function EvictionCheck(binding, task, observed, now)
    return { verdict = 'hold', recheckAfterSeconds = -1 }
end
