-- Empties every library.
-- kind: health
-- expect: healthy
local was = type(pairs) == 'function' and math.floor(1.5) == 1 and #table.concat({ 'a', 'b' }) == 2

function InterpretHealth(object)
    for _, library in next, { math, os, table, package, string } do
        for name in next, library do
            library[name] = nil
        end
    end
    local names, globals = {}, _G
    for name in next, globals do
        names[name] = true
    end
    for name in next, names do
        globals[name] = nil
    end
    return was
end
