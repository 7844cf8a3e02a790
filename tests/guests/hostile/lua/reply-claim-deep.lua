-- Answers with a node claim that is nested deeply.
-- kind: replicas
-- expect: bad-reply
-- says: nested deeper than
function GetReplicas(object)
    local claim = {}
    for i = 1, 500 do
        claim = { hardNodeAffinity = claim }
    end
    return 1, { nodeClaim = claim }
end
