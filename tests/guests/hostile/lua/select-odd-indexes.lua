-- Selects arguments by odd numbers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, index in ipairs({ 1e300, 1 / 0, 2 ^ 53, 2 ^ 31, 1e9 }) do
        local fine, count = pcall(function()
            return select('#', select(index, 1, 2))
        end)
        if fine and count > 2 then
            return false
        end
    end
    return true
end
