-- Makes errors and catches them, for ever.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    while true do
        pcall(error, {})
        pcall(error)
        pcall(nil)
    end
end
