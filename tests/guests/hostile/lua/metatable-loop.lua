-- Loops in a metamethod.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    local trap = setmetatable({}, {
        __index = function(self, name)
            return self[name]
        end,
    })
    return trap.x
end
