-- Catches the stop and returns a verdict.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    pcall(function()
        while true do
        end
    end)
    return true
end
