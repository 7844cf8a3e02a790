-- Answers with a small status that stands for a huge one.
-- kind: reflect-status
-- expect: bad-reply
-- says: larger than
function ReflectStatus(object)
    local status = { x = 1 }
    for i = 1, 60 do
        status = { a = status, b = status }
    end
    return status
end
