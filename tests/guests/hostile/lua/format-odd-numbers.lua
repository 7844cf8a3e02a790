-- Formats numbers that are no integers as integers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, number in ipairs({ 1e300, -1e300, 1 / 0, -1 / 0, 2 ^ 63, -2 ^ 64 }) do
        for _, layout in ipairs({ '%d', '%x', '%c', '%u', '%o', '%i', '%5.3d' }) do
            pcall(string.format, layout, number)
            pcall(string.format, layout, 0 / 0)
        end
    end
    return true
end
