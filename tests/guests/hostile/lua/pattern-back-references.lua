-- Backtracks over references to captures.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local text = 'x'
    for i = 1, 11 do
        text = text .. text
    end
    return text:find('(.*)(.*)(.*)%1%2%3b')
end
