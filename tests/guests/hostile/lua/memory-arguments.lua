-- Copies its argument without end.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local copies = {}
    local function copy(value)
        if type(value) ~= 'table' then
            return value
        end
        local new = {}
        for name, member in pairs(value) do
            new[name] = copy(member)
        end
        return new
    end
    while true do
        copies[#copies + 1] = copy(object)
    end
end
