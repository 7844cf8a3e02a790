-- Lets workloads run only on clusters with a label.
local KEY = "example.io/allowed"

function Filter(binding, clusters, now)
  local verdicts = {}
  for i, cluster in ipairs(clusters) do
    if cluster.labels and cluster.labels[KEY] ~= nil then
      verdicts[i] = true
    else
      verdicts[i] = { fit = false, reason = "NoLabel", message = "no label " .. KEY }
    end
  end
  return verdicts
end
