-- Fails an assertion with a message of a megabyte.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 20 do
        text = text .. text
    end
    assert(false, text)
    return true
end
