-- Answers with a verdict that does not exist.
-- kind: eviction-check
-- expect: bad-reply
function EvictionCheck(binding, task, observed, now)
    return { verdict = 'destroy' }
end
