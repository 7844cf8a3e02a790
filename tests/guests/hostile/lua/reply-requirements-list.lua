-- Answers with a list for requirements.
-- kind: replicas
-- expect: bad-reply
function GetReplicas(object)
    return 1, { 1, 2, 3 }
end
