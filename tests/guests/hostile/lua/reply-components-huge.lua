-- Answers with a component of 10^300 replicas.
-- kind: components
-- expect: bad-reply
function GetComponents(object)
    return { { name = 'a', replicas = 1e300 } }
end
