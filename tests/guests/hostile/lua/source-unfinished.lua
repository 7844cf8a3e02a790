-- Ends within a text.
-- kind: health
-- expect: trap
-- at: load
-- says: string
function InterpretHealth(object)
    return 'unfinished
end
