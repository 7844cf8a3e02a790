-- Counts its calls in globals.
-- kind: health
-- expect: healthy
calls = (calls or 0) + 1

function InterpretHealth(object)
    seen = (seen or 0) + 1
    _G.seen_too = (_G.seen_too or 0) + 1
    return calls == 1 and seen == 1 and _G.seen_too == 1
end
