-- Keeps the error of every function that it may not call.
-- kind: health
-- expect: denied
-- says: more than 1000 of its calls were refused
function InterpretHealth(object)
    local kept = {}
    while true do
        kept[#kept + 1] = select(2, pcall(load, 'return 1'))
    end
end
