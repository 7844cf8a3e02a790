-- Catches every stop and goes on.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    while true do
        pcall(function()
            while true do
            end
        end)
    end
end
