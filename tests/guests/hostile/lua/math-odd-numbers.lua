-- Calls every function of math with odd numbers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local odd = { 0 / 0, 1 / 0, -1 / 0, 1e308, -1e308, 5e-324, 2 ^ 53, -0 }
    for name, called in pairs(math) do
        if type(called) == 'function' then
            for _, left in ipairs(odd) do
                pcall(called, left)
                for _, right in ipairs(odd) do
                    pcall(called, left, right)
                end
            end
        end
    end
    return type(math.random()) == 'number'
end
