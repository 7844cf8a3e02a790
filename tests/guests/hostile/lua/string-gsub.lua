-- Loops in the callback of a replacement.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    string.gsub('x', 'x', function()
        while true do
        end
    end)
    return true
end
