-- Searches with patterns that are malformed.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local caught = 0
    for _, pattern in ipairs({ '[', '[a', '[^', '%', '%b', '%bx', '%f', '(', ')', '%1', '(()', '[a-' }) do
        if not pcall(string.find, 'abc', pattern) then
            caught = caught + 1
        end
    end
    return caught >= 10
end
