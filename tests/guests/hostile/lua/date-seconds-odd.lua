-- Prints times outside of every calendar.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, seconds in ipairs({ 1e308, -1e308, 0 / 0, 1 / 0, 2 ^ 53, -2 ^ 53, -1, 253402300800 }) do
        for _, layout in ipairs({ '%c', '*t', '!*t', '%Y-%m-%d', '%s' }) do
            pcall(os.date, layout, seconds)
        end
    end
    return true
end
