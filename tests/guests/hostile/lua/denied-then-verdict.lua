-- Is refused everything, catches that, and answers.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local tried = 0
    for _, name in ipairs({ 'load', 'loadstring', 'getfenv', 'setfenv', 'setmetatable', 'getmetatable', 'collectgarbage', 'rawset', 'newproxy' }) do
        local fine, refusal = pcall(_G[name], 1)
        if not fine and tostring(refusal):find('not supported', 1, true) then
            tried = tried + 1
        end
    end
    return tried == 9
end
