-- Answers with an object that is too large.
-- kind: retain
-- expect: bad-reply
-- says: larger than
function Retain(desired, observed)
    local text = 'x'
    for i = 1, 17 do
        text = text .. text
    end
    desired.spec.text = text
    return desired
end
