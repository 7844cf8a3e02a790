-- Recurses while it joins texts.
-- kind: health
-- expect: memory
function InterpretHealth(object)
    local function again(text)
        return text .. again(text .. 'x')
    end
    return again('x')
end
