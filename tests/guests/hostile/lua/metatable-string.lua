-- Looks for the metatable of all strings.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    getmetatable('').__index = nil
    return true
end
