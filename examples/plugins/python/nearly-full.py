"""Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again."""

from typing import Any

from bulkhead import AddTaint, Cluster, Reason, RemoveTaint, TaintEffect, cluster_taint, config, configure, plugin

KEY = "example.io/nearly-full"
PERCENT = {"type": "integer", "minimum": 1, "maximum": 100}

plugin(
    name="nearly-full",
    version="0.1.0",
    taint_keys=[KEY],
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"addAtPercent": PERCENT, "removeBelowPercent": PERCENT},
        "additionalProperties": False,
        "examples": [None, {"addAtPercent": 95, "removeBelowPercent": 80}],
    },
)


@configure
def limits(settings: Any) -> tuple[int, int]:
    settings = settings or {}
    return settings.get("addAtPercent", 90), settings.get("removeBelowPercent", 75)


@cluster_taint
def decide(cluster: Cluster) -> list[AddTaint | RemoveTaint]:
    document = cluster.document
    allocatable = document.quantity_milli("/status/resourceSummary/allocatable/pods") or 0
    allocated = document.quantity_milli("/status/resourceSummary/allocated/pods") or 0
    if allocatable <= 0:
        return []
    add_at, remove_below = config()
    used = int(min(100 * float(max(allocated, 0)) / float(allocatable), 999))
    message = f"{used} % of the pods are in use"
    is_tainted = any(taint.key == KEY for taint in cluster.taints)
    if not is_tainted and used >= add_at:
        return [AddTaint(KEY, TaintEffect.PREFER_NO_SCHEDULE, Reason("NearlyFull", message))]
    if is_tainted and used < remove_below:
        return [RemoveTaint(KEY, TaintEffect.PREFER_NO_SCHEDULE, Reason("RoomForPods", message))]
    return []
