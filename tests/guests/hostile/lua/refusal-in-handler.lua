-- Is refused something in the handler of a refusal.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local fine, message = xpcall(load, function() return load('return 1') end)
    return not fine
end
