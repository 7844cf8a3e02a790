-- Is refused as often as it may be, and answers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    for i = 1, 900 do
        pcall(require, 'socket')
    end
    return true
end
