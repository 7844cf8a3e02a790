-- Loads two modules that load each other.
-- kind: health
-- expect: trap
function InterpretHealth(object)
    package.preload.left = function()
        return require('right')
    end
    package.preload.right = function()
        return require('left')
    end
    require('left')
    return true
end
