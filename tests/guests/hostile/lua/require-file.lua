-- Loads a file.
-- kind: health
-- expect: denied
-- says: the only module is kube
function InterpretHealth(object)
    return require('./../../etc/passwd')
end
