-- Begins to search at odd places.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, start in ipairs({ 0, -1, 1e300, -1e300, 1 / 0, -1 / 0, 2 ^ 53, 2147483648, -2147483649 }) do
        pcall(string.find, 'abc', 'b', start)
        pcall(string.find, 'abc', '', start, true)
        pcall(string.match, 'abc', '()', start)
    end
    return true
end
