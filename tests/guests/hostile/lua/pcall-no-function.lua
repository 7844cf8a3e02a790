-- Calls values that are no functions, without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local values = { 1, 'x', {}, true, 0 / 0 }
    while true do
        for _, value in ipairs(values) do
            pcall(value, value, value)
        end
    end
end
