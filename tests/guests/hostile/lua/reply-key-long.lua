-- Returns a table with a long key and no JSON in it.
-- kind: reflect-status
-- expect: bad-reply
-- says: cannot be returned
function ReflectStatus(object)
    local text = 'a'
    for i = 1, 15 do
        text = text .. text
    end
    return { [text] = print }
end
