-- Fails with a message of megabytes.
-- kind: health
-- expect: trap
-- says: xxxx
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 20 do
        text = text .. text
    end
    error(text)
end
