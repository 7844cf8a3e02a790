-- Replaces the methods of strings.
-- kind: health
-- expect: healthy
local was = ('x'):upper()

function InterpretHealth(object)
    string.upper = function()
        return 'hijacked'
    end
    string.format, string.find, string.sub = nil, nil, nil
    return was == 'X' and ('x'):upper() == 'hijacked'
end
