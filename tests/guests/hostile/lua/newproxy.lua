-- Makes userdata.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return newproxy(true) ~= nil
end
