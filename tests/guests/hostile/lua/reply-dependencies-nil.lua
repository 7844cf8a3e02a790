-- Depends on what the module gives when there is nothing, which is nil.
-- kind: dependencies
-- expect: bad-reply
-- says: nil, not a list
function GetDependencies(object)
    return require('kube').getPodDependencies({ spec = {} }, 'default')
end
