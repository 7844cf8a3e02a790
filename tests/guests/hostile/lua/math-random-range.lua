-- Draws from ranges that are empty or huge.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, range in ipairs({ { 0 }, { -1 }, { 5, 1 }, { 1, 2 ^ 53 }, { -2 ^ 53, 2 ^ 53 } }) do
        if not pcall(math.random, unpack(range)) then
            caught = caught + 1
        end
    end
    return caught >= 3
end
