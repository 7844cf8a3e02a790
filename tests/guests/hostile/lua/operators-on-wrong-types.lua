-- Applies every operator to values that do not have it, without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local attempts = {
        function() return {} + 1 end,
        function() return {} < {} end,
        function() return #5 end,
        function() return nil .. 'x' end,
        function() return (nil).x end,
        function() return ('x').y.z end,
        function() return -{} end,
    }
    while true do
        for _, attempt in ipairs(attempts) do
            if pcall(attempt) then
                return true
            end
        end
    end
end
