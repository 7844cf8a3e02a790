-- Health of a Plugin of bulkhead.dev for Argo CD, from the conditions that the leader writes.
local hs = { status = "Progressing", message = "the leader has not read this version yet" }
local status, metadata = obj.status, obj.metadata
if type(status) ~= "table" or type(metadata) ~= "table" or type(status.conditions) ~= "table" then
  return hs
end
if status.observedGeneration ~= metadata.generation then
  return hs
end
local loaded, answering = nil, nil
for _, condition in ipairs(status.conditions) do
  if type(condition) == "table" and condition.type == "Loaded" then
    loaded = condition
  elseif type(condition) == "table" and condition.type == "Answering" then
    answering = condition
  end
end
if loaded == nil or answering == nil then
  return hs
end
if loaded.status ~= "True" then
  hs.status = "Degraded"
  hs.message = loaded.message
elseif answering.status == "True" then
  hs.status = "Healthy"
  hs.message = loaded.message
elseif answering.reason == "SwitchedOff" then
  hs.status = "Suspended"
  hs.message = answering.message
else
  hs.status = "Degraded"
  hs.message = answering.message
end
return hs
