-- Health of a PluginTrust of bulkhead.dev for Argo CD, from the condition that the leader writes.
local hs = { status = "Progressing", message = "the leader has not read this version yet" }
local status, metadata = obj.status, obj.metadata
if type(status) ~= "table" or type(metadata) ~= "table" or type(status.conditions) ~= "table" then
  return hs
end
if status.observedGeneration ~= metadata.generation then
  return hs
end
for _, condition in ipairs(status.conditions) do
  if type(condition) == "table" and condition.type == "Valid" then
    hs.status = condition.status == "True" and "Healthy" or "Degraded"
    hs.message = condition.message
  end
end
return hs
