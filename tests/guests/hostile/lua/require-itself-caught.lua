-- Loads a module that loads itself and catches the errors.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    package.preload.own = function()
        pcall(require, 'own')
        pcall(require, 'own')
    end
    require('own')
    return true
end
