-- Adds to the table that it walks.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local list = { 1 }
    for index, value in ipairs(list) do
        list[index + 1] = value
        list[index - 100] = nil
    end
    return true
end
