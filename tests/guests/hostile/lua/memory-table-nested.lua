-- Nests tables.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local list = {}
    while true do
        list = { list, list, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {} }
    end
end
