-- Gives a reason that is no text.
-- kind: health
-- expect: healthy
function InterpretHealth(object)
    return { health = 'Healthy', reason = '\255\254', message = '\0\128' }
end
