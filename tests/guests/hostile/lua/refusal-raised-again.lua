-- Raises again the refusal that it caught.
-- kind: health
-- expect: denied
-- says: not supported
function InterpretHealth(object)
    local fine, refusal = pcall(load, 'return 1')
    error(refusal)
end
