-- Returns a request with a quantity of thousands of digits.
-- kind: replicas
-- expect: bad-reply
-- says: a quantity has at most 63
function GetReplicas(object)
    local text = '9'
    for i = 1, 12 do
        text = text .. text
    end
    return 1, { resourceRequest = { cpu = text } }
end
