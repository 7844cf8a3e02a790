-- Looks for metatables in the arguments and finds plain tables.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    object.__index = function() return 'x' end
    object.metadata.__index = object
    object.__gc, object.__mode, object.__metatable = error, 'k', false
    return object.missing == nil and object.metadata.missing == nil
end
