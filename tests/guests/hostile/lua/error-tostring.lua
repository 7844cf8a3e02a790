-- Fails with a table that has something to say about being printed.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    error({
        __tostring = function()
            while true do
            end
        end,
    })
end
