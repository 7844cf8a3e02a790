-- Makes characters of odd numbers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, code in ipairs({ -1, 256, 1e300, -1e300, 1 / 0, 2 ^ 53 }) do
        if not pcall(string.char, code) then
            caught = caught + 1
        end
    end
    return caught == 6
end
