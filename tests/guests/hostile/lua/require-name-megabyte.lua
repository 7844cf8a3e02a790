-- Asks for a module with a name of a megabyte.
-- kind: health
-- expect: denied
-- says: the only module is kube
function InterpretHealth(object)
    local text = 'a'
    for i = 1, 20 do
        text = text .. text
    end
    return require(text)
end
