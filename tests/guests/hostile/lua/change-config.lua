-- Changes its configuration.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    local fine = config.limit == 3
    config.limit, config.more = 4, {}
    config = nil
    return fine
end
