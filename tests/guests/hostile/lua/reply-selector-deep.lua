-- Returns a dependency with a selector that is nested deeply.
-- kind: dependencies
-- expect: bad-reply
function GetDependencies(object)
    local selector = { a = 'b' }
    for i = 1, 90 do
        selector = { matchLabels = selector }
    end
    return { { apiVersion = 'v1', kind = 'Secret', namespace = 'x', labelSelector = selector } }
end
