-- Looks for a balance that never comes, at every position.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local text = '('
    for i = 1, 12 do
        text = text .. text
    end
    return text:find('%b()') == nil
end
