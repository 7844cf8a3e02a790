-- Blames stack levels that do not exist.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local levels = { 1e9, -1e9, 1e300, 0 / 0, 1 / 0 }
    local caught = 0
    for _, level in ipairs(levels) do
        if not pcall(error, 'x', level) then
            caught = caught + 1
        end
    end
    return caught == #levels
end
