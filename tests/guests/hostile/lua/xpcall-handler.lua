-- Loops in the handler of an error.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    xpcall(error, function()
        while true do
        end
    end, 'x')
    return true
end
