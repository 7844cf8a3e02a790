-- Fails with a message that reads backwards.
-- kind: health
-- expect: trap
-- says: safedessap ton
function InterpretHealth(object)
    error('safe\226\128\174dessap ton')
end
