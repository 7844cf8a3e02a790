-- Answers with a dependency that names nothing.
-- kind: dependencies
-- expect: bad-reply
function GetDependencies(object)
    return { { apiVersion = 'v1' } }
end
