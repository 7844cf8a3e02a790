-- Puts functions of its own into every library.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for _, library in ipairs({ string, table, math, os, package }) do
        for name in pairs(library) do
            library[name] = function()
                return 'mine'
            end
        end
    end
    return ('x'):upper() == 'mine'
end
