-- Writes to odd indexes.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local list = {}
    for _, index in ipairs({ 0, -1, 0.5, 1e308, -1e308, 1 / 0, -1 / 0, 2 ^ 53, 2 ^ 31, 5e-324 }) do
        list[index] = index
    end
    return #list == 0 and next(list) ~= nil
end
