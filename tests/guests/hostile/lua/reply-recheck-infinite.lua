-- Asks to be called again in the year 10^300.
-- kind: eviction-check
-- expect: bad-reply
-- says: recheckAfterSeconds
function EvictionCheck(binding, task, observed, now)
    return { verdict = 'hold', recheckAfterSeconds = 1e300 }
end
