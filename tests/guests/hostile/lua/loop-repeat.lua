-- Never comes back, by the other loop.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    repeat
        local again = true
    until not again
end
