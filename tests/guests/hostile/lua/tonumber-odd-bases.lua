-- Reads numbers with odd bases.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, base in ipairs({ 0, 1, 37, -16, 1e300, 1 / 0 }) do
        if not pcall(tonumber, 'zz', base) then
            caught = caught + 1
        end
    end
    return caught == 6 and tonumber('zz', 36) == 1295
end
