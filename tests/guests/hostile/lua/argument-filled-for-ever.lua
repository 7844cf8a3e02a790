-- Traverses its arguments without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    while true do
        for name, member in pairs(object) do
            if type(member) == 'table' then
                for _ in pairs(member) do
                end
            end
        end
    end
end
