-- Health script in Argo CD's format: the object is the global `obj`, the result a table with `status` and `message`.
local hs = { status = "Progressing", message = "the certificate is not issued yet" }
if obj.status ~= nil and obj.status.conditions ~= nil then
  for _, condition in ipairs(obj.status.conditions) do
    if condition.type == "Issuing" and condition.status == "True" then
      hs.message = condition.message
      return hs
    elseif condition.type == "Ready" and condition.status == "False" then
      hs.status = "Degraded"
      hs.message = condition.message
      return hs
    elseif condition.type == "Ready" and condition.status == "True" then
      hs.status = "Healthy"
      hs.message = condition.message
      return hs
    end
  end
end
return hs
