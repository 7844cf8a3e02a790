-- Fails in the handler of the handler of an error, and so on.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local function handler()
        xpcall(error, handler, 'again')
        xpcall(error, handler, 'again')
    end
    while true do
        xpcall(error, handler, 'first')
    end
end
