-- Lets workloads run only on clusters with the configured labels.
local required = type(config) == "table" and config.labels or {}

-- The first label that a cluster lacks is the reason.
local function verdict(labels)
  for _, label in ipairs(required) do
    local found = labels[label.key]
    if found == nil then
      return { fit = false, reason = "LabelMissing", message = "no label " .. label.key }
    elseif label.value ~= nil and found ~= label.value then
      local message = string.format("label %s is %s, not %s", label.key, found, label.value)
      return { fit = false, reason = "LabelDiffers", message = message }
    end
  end
  return true
end

function Filter(binding, clusters, now)
  local verdicts = {}
  for i, cluster in ipairs(clusters) do
    verdicts[i] = verdict(cluster.labels or {})
  end
  return verdicts
end
