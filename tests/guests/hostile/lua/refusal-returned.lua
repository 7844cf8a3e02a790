-- Returns the refusal that it caught.
-- kind: health
-- expect: bad-reply
function InterpretHealth(object)
    return select(2, pcall(load, 'return 1'))
end
