-- Unpacks ranges with odd borders.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local ranges = { { 1, 2 ^ 53 }, { -2 ^ 53, 2 ^ 53 }, { 1, 1 / 0 }, { -1 / 0, 1 / 0 }, { 1, 1e300 }, { -2147483648, 2147483647 } }
    local most = 0
    for _, range in ipairs(ranges) do
        local fine, count = pcall(function()
            return select('#', unpack({}, range[1], range[2]))
        end)
        if fine and count > most then
            most = count
        end
    end
    return most < 10000
end
