-- Recurses through a comparison.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    local function sort()
        table.sort({ 1, 2 }, sort)
        return true
    end
    sort()
    return true
end
