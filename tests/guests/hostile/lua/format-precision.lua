-- Prints huge numbers with a hundred digits, hundreds of times, without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local layout, values = '', {}
    for i = 1, 500 do
        layout, values[i] = layout .. '%.99f', 1e308
    end
    while true do
        string.format(layout, unpack(values))
    end
end
