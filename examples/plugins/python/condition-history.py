"""Taints a cluster whose condition Ready keeps changing, and removes the taint when it has been stable for a while."""

from datetime import datetime, timedelta
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

KEY = "example.io/flapping"

plugin(
    name="condition-history",
    version="0.1.0",
    taint_keys=[KEY],
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {
            "changes": {"type": "integer", "minimum": 1, "maximum": 7},
            "windowSeconds": {"type": "integer", "minimum": 1, "maximum": 86400},
        },
        "additionalProperties": False,
        "examples": [None, {"changes": 5, "windowSeconds": 3600}],
    },
)


@configure
def limits(settings: Any) -> tuple[int, int]:
    settings = settings or {}
    return settings.get("changes", 3), settings.get("windowSeconds", 600)


@cluster_taint
def decide(cluster: Cluster) -> list[AddTaint | RemoveTaint]:
    changes, window = config()
    start = now() - timedelta(seconds=window)
    history = cluster.document.each("/conditionHistory/Ready", "/since")
    # The first entry is the start of the history.
    recent = sum(datetime.fromisoformat(since.replace("Z", "+00:00")) > start for since in history[1:])
    ready = cluster.condition("Ready")
    is_ready = ready is not None and ready.status is ConditionStatus.TRUE
    is_tainted = any(taint.key == KEY for taint in cluster.taints)
    if not is_tainted and recent >= changes:
        reason = Reason("Flapping", f"the condition Ready has changed {recent} times in {window} s")
        return [AddTaint(KEY, TaintEffect.NO_SCHEDULE, reason)]
    if is_tainted and is_ready and recent == 0:
        reason = Reason("Stable", f"the condition Ready has not changed in {window} s")
        return [RemoveTaint(KEY, TaintEffect.NO_SCHEDULE, reason)]
    return []
