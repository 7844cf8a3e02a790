-- Recurses through pcall, which catches every overflow, twice at each level.
-- kind: health
-- expect: out-of-fuel
function InterpretHealth(object)
    local function deeper()
        pcall(deeper)
        pcall(deeper)
    end
    deeper()
    return true
end
