-- Changes what it was given.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local fine = object.spec.replicas == 3 and object.metadata.labels.app == 'web' and #object.list == 3
    object.spec.replicas, object.metadata, object.list[2] = 7, nil, nil
    table.insert(object.list, 'x')
    return fine
end
