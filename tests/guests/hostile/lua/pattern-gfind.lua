-- Iterates over the empty matches of a long text without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 10 do
        text = text .. text
    end
    while true do
        for _ in string.gfind(text, '()') do
        end
    end
end
