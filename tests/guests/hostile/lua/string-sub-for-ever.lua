-- Copies a long text without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 14 do
        text = text .. text
    end
    local from = 1
    while true do
        from = from % 100 + 1
        text:sub(from)
    end
end
