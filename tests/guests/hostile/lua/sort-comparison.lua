-- Loops in a comparison.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    table.sort({ 3, 2, 1 }, function()
        while true do
        end
    end)
    return true
end
