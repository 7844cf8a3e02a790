-- Compares each place with a long set without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local set = ''
    for i = 1, 2000 do
        set = set .. 'a-c'
    end
    local text = 'x'
    for i = 1, 12 do
        text = text .. text
    end
    while true do
        text:find('[' .. set .. ']')
    end
end
