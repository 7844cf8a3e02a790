-- Makes times of odd fields.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, number in ipairs({ 1e308, -1e308, 0 / 0, 1 / 0, 2 ^ 53, -2147483648, 2147483647 }) do
        for _, name in ipairs({ 'year', 'month', 'day', 'hour', 'min', 'sec' }) do
            local fields = { year = 2024, month = 1, day = 1 }
            fields[name] = number
            pcall(os.time, fields)
        end
    end
    pcall(os.time, {})
    pcall(os.time, { year = {}, month = 'x', day = true })
    return true
end
