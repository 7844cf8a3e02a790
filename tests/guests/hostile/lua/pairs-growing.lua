-- Adds a member to a table at each step of its traversal.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = { a = 1 }
    while true do
        local count = 0
        pcall(function()
            for name in pairs(list) do
                count = count + 1
                list[name .. count] = true
                if count > 100 then
                    list = { a = 1 }
                    return
                end
            end
        end)
    end
end
