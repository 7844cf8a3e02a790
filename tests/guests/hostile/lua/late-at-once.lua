-- Answers after the deadline, before the clock was looked at.
-- kind: health
-- expect: deadline
-- at: load
-- says: took longer than 0 ms
-- wall-clock-ms: 0
function InterpretHealth(object)
    return true
end
