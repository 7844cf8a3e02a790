-- Loads a library that is not open.
-- kind: health
-- expect: denied
function InterpretHealth(object)
    return require('io').open('/etc/passwd') ~= nil
end
