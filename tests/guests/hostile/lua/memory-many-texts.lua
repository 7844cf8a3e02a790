-- Keeps short texts without end.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local list = {}
    for i = 1, 1000000000 do
        list[i] = 'text number ' .. i .. ' of very many that are kept'
    end
end
