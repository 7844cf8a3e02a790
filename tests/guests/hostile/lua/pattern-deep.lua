-- Nests the matcher deeper than the machine's stack.
-- kind: health
-- expect: trap
-- says: pattern too complex
function InterpretHealth(object)
    local pattern, text = 'x?', 'x'
    for i = 1, 9 do
        pattern, text = pattern .. pattern, text .. text
    end
    return text:match(pattern) == text
end
