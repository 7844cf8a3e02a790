-- Answers with an object that contains a function.
-- kind: aggregate-status
-- expect: bad-reply
-- says: function
function AggregateStatus(object, items)
    object.status = { call = print }
    return object
end
