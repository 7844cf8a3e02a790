-- Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others.
local minimum = type(config) == "table" and config.minimum or "1.28"

-- The major and minor number of a version such as v1.30.2.
local function version(text)
  local major, minor = string.match(text or "", "^v?(%d+)%.(%d+)")
  return tonumber(major), tonumber(minor)
end

local least_major, least_minor = version(minimum)

function Filter(binding, clusters, now)
  local verdicts = {}
  for i, cluster in ipairs(clusters) do
    local text = cluster.status.kubernetesVersion
    local major, minor = version(text)
    if major == nil then
      verdicts[i] = "abstain"
    elseif major > least_major or major == least_major and minor >= least_minor then
      verdicts[i] = true
    else
      local message = string.format("it runs %s, and %s is needed", text, minimum)
      verdicts[i] = { fit = false, reason = "VersionTooOld", message = message }
    end
  end
  return verdicts
end
