-- Keeps the error of every module that it asks for.
-- kind: health
-- expect: denied
-- says: more than 1000 of its calls were refused
function InterpretHealth(object)
    local kept = {}
    for i = 1, 1e9 do
        kept[i] = select(2, pcall(require, 'module ' .. i))
    end
    return true
end
