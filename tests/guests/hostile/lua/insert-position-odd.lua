-- Inserts at odd positions.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, position in ipairs({ 0, -1, 1e300, -1e300, 1 / 0, 2 ^ 53, -2147483648, 2147483647 }) do
        local list = { 1, 2, 3 }
        pcall(table.insert, list, position, 'x')
        pcall(table.remove, list, position)
        if #list > 4 then
            return false
        end
    end
    return true
end
