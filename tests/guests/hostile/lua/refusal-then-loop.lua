-- Goes on for ever after a refusal.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    pcall(load, 'return 1')
    while true do
    end
end
