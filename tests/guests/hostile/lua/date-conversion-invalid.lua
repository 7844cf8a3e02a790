-- Prints times with conversions that do not exist.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, layout in ipairs({ '%', '%E', '%Ea', '%Q', '%5Y', '\0%\0', '%%%' }) do
        pcall(os.date, layout, 0)
    end
    return true
end
