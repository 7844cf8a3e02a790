-- Takes parts of a text with odd borders.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local borders = { 0, -1, 1e300, -1e300, 1 / 0, -1 / 0, 2 ^ 53, -2 ^ 31, 2147483648 }
    for _, from in ipairs(borders) do
        for _, to in ipairs(borders) do
            local fine, part = pcall(string.sub, 'abc', from, to)
            if fine and #part > 3 then
                return false
            end
        end
    end
    return true
end
