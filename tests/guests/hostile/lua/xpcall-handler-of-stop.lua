-- Goes on in the handler of its own stop.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    xpcall(function()
        while true do
        end
    end, function()
        while true do
            pcall(error)
        end
    end)
    return true
end
