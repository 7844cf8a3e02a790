-- Taints a cluster that is not ready, and removes the taint when it is ready again.
local KEY = "example.io/not-ready"

function ClusterTaint(cluster, now)
  local ready
  for _, condition in ipairs(cluster.status.conditions or {}) do
    if condition.type == "Ready" then
      ready = condition
    end
  end
  local tainted = false
  for _, taint in ipairs(cluster.spec.taints or {}) do
    tainted = tainted or taint.key == KEY
  end
  if ready == nil or (ready.status == "True") ~= tainted then
    return {}
  end
  if tainted then
    return { { remove = { key = KEY, effect = "NoSchedule" }, reason = "Ready", message = "it is ready again" } }
  end
  return { { add = { key = KEY, effect = "NoSchedule" }, reason = "NotReady", message = ready.message } }
end
