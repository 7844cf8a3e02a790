-- Loads modules whose names are no texts.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    local name = {}
    package.preload[name] = function()
        return { fine = true }
    end
    if require(name).fine then
        return require(0 / 0)
    end
end
