"""Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer."""

from typing import Any

from bulkhead import (
    AddTaint,
    Cluster,
    ConditionStatus,
    Reason,
    RemoveTaint,
    TaintEffect,
    cluster_taint,
    config,
    configure,
    now,
    plugin,
)

KEY = "example.io/unstable"
SECONDS = {"type": "integer", "minimum": 0, "maximum": 86400}

plugin(
    name="condition-history",
    version="0.1.0",
    taint_keys=[KEY],
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"addAfterSeconds": SECONDS, "removeAfterSeconds": SECONDS},
        "additionalProperties": False,
        "examples": [None, {"addAfterSeconds": 30, "removeAfterSeconds": 600}],
    },
)


@configure
def limits(settings: Any) -> tuple[int, int]:
    settings = settings or {}
    return settings.get("addAfterSeconds", 60), settings.get("removeAfterSeconds", 300)


@cluster_taint
def decide(cluster: Cluster) -> list[AddTaint | RemoveTaint]:
    ready = cluster.condition("Ready")
    if ready is None or ready.last_transition_s is None:
        return []
    add_after, remove_after = config()
    age = int(now().timestamp()) - ready.last_transition_s
    is_ready = ready.status is ConditionStatus.TRUE
    is_tainted = any(taint.key == KEY for taint in cluster.taints)
    if not is_ready and not is_tainted and age >= add_after:
        reason = Reason("NotReadyForLong", f"not ready for {age} s, the limit is {add_after} s")
        return [AddTaint(KEY, TaintEffect.NO_SCHEDULE, reason)]
    if is_ready and is_tainted and age >= remove_after:
        reason = Reason("ReadyForLong", f"ready for {age} s, the limit is {remove_after} s")
        return [RemoveTaint(KEY, TaintEffect.NO_SCHEDULE, reason)]
    return []
