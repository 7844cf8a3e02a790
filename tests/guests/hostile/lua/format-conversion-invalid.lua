-- Formats with conversions that do not exist.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, layout in ipairs({ '%', '%y', '%99999s', '%.999f', '%--------d', '%l', '%n' }) do
        if not pcall(string.format, layout, 1) then
            caught = caught + 1
        end
    end
    return caught == 7
end
