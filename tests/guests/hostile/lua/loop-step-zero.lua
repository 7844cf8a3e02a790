-- Counts without getting on, which the machine takes for counting to nowhere.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for i = 1, 2, 0 do
    end
    return true
end
