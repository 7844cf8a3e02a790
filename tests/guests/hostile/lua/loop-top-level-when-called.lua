-- Behaves when it is loaded, where there is no time, and loops at the top level when it is called.
-- kind: cluster-taint
-- expect: out-of-fuel
if pcall(os.time) then
    while true do
    end
end

function ClusterTaint(cluster, now)
    return {}
end
