-- Health of a ClusterDrain of bulkhead.dev for Argo CD, from its phase.
local hs = { status = "Progressing", message = "the drain has not started yet" }
local spec, status = obj.spec, obj.status
if type(spec) ~= "table" or type(status) ~= "table" then
  return hs
end
local cluster = tostring(spec.clusterName)
if status.phase == "Drained" then
  hs.status = "Healthy"
  hs.message = "no workload is left on " .. cluster
elseif spec.evictionsPerSecond == 0 then
  hs.status = "Suspended"
  hs.message = "the drain is paused: evictionsPerSecond is 0"
elseif status.phase == "Draining" then
  local bindings, copies = status.bindingsLeft or 0, status.copiesLeft or 0
  hs.message = bindings .. " bindings are placed on " .. cluster .. ", and " .. copies .. " more have old copies there"
elseif type(status.message) == "string" and status.message ~= "" then
  hs.message = status.message
end
return hs
