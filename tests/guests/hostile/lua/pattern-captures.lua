-- Captures more than there is room for.
-- kind: health
-- expect: trap
-- says: too many captures
function InterpretHealth(object)
    local pattern = ''
    for i = 1, 100 do
        pattern = pattern .. '()'
    end
    return (''):match(pattern) ~= nil
end
