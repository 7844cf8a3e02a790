-- Fails with a message of a megabyte.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 20 do
        text = text .. text
    end
    error(text)
end
