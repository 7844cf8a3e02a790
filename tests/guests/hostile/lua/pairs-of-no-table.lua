-- Traverses values that are no tables.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, value in ipairs({ 1, 'x', true, print, 0 / 0 }) do
        for _, walk in ipairs({ pairs, ipairs, next }) do
            if not pcall(walk, value) then
                caught = caught + 1
            end
        end
    end
    return caught == 15
end
