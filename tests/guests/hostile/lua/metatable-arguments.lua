-- Puts a metatable on its argument.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    setmetatable(object, { __index = error })
    return true
end
