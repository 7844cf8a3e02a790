-- Goes round by calling a table of functions.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local next_of = {}
    for i = 1, 10 do
        next_of[i] = function() return i % 10 + 1 end
    end
    local at = 1
    while at > 0 do
        at = next_of[at]()
    end
    return true
end
