-- Joins ranges with odd borders.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, border in ipairs({ 1e300, -1e300, 1 / 0, 2 ^ 53, -2147483648, 2147483647 }) do
        pcall(table.concat, { 'a' }, 'x', border)
        pcall(table.concat, { 'a' }, 'x', 2, border)
        local fine, text = pcall(table.concat, { 'a' }, 'x', border, border)
        if fine and #text > 1 then
            return false
        end
    end
    return true
end
