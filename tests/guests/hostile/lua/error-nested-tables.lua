-- Raises an error with a deep value.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local value = {}
    for i = 1, 50000 do
        value = { value }
    end
    error(value)
end
