-- Takes its function away when it is called.
-- kind: cluster-taint
-- expect: missing-export
function ClusterTaint(cluster, now)
    return {}
end

if pcall(os.time) then
    ClusterTaint = nil
end
