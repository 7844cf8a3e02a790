-- Holds old copies until the clusters that the workload moved to report as many available replicas as are desired.
function EvictionCheck(binding, task, observed, now)
  local desired = binding.spec.replicas or 0
  local available = 0
  for _, report in ipairs(observed) do
    local number = type(report.status) == "table" and report.status.availableReplicas
    if report.clusterName ~= task.fromCluster and type(number) == "number" and number > 0 then
      available = available + number
    end
  end
  local message = string.format("%s of %s replicas are available elsewhere", available, desired)
  if desired > 0 and available >= desired then
    return { verdict = "release", reason = "Available", message = message }
  end
  return { verdict = "hold", reason = "NotAvailable", message = message }
end
