-- Asks for a date in a layout of a megabyte.
-- kind: health
-- expect: trap
-- says: string is longer than
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 20 do
        text = text .. text
    end
    return os.date(text) ~= ''
end
