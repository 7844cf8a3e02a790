-- Answers with an object that is nested deeply.
-- kind: revise
-- expect: bad-reply
-- says: nested deeper than
function ReviseReplica(object, replicas)
    local spec = {}
    for i = 1, 1000 do
        spec = { spec = spec }
    end
    object.spec = spec
    return object
end
