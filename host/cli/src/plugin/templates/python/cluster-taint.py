"""Taints a cluster that is not ready, and removes the taint when it is ready again."""

from bulkhead import AddTaint, Cluster, ConditionStatus, Reason, RemoveTaint, TaintEffect, cluster_taint, plugin

KEY = "example.io/not-ready"

plugin(name="{{name}}", version="0.1.0", taint_keys=[KEY], reusable=True)


@cluster_taint
def decide(cluster: Cluster) -> list[AddTaint | RemoveTaint]:
    ready = cluster.condition("Ready")
    if ready is None:
        return []
    is_ready = ready.status is ConditionStatus.TRUE
    is_tainted = any(taint.key == KEY for taint in cluster.taints)
    if not is_ready and not is_tainted:
        return [AddTaint(KEY, TaintEffect.NO_SCHEDULE, Reason("NotReady", ready.message))]
    if is_ready and is_tainted:
        return [RemoveTaint(KEY, TaintEffect.NO_SCHEDULE, Reason("Ready", "it is ready again"))]
    return []
