-- Waits for time to pass, which it does not while a call lasts.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local start = os.time()
    while os.time() < start + 1 do
    end
    return true
end
