-- Asks for a date in a layout of a megabyte.
-- kind: health
-- expect: trap
-- says: string is longer than
function InterpretHealth(object)
    local layout = '%c%c%c%c'
    for i = 1, 18 do
        layout = layout .. layout
    end
    return #os.date(layout, 0) > 0
end
