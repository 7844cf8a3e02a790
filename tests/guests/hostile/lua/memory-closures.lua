-- Keeps closures.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local kept
    while true do
        local before, number = kept, {}
        kept = function()
            return before, number, { number, before }
        end
    end
end
