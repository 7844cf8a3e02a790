-- Prints without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    while true do
        print('x', object)
    end
end
