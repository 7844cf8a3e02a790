-- Returns lists and maps that are nested deeply.
-- kind: reflect-status
-- expect: bad-reply
-- says: nested deeper than
function ReflectStatus(object)
    local status = { last = 1 }
    for i = 1, 60 do
        status = { { a = status } }
    end
    return status
end
