"""Holds an eviction until the old copy reports a complete backup, or until that takes too long."""

from typing import Any

from bulkhead import Binding, EvictionTask, EvictionVerdict, config, configure, eviction_check, now, plugin

RECHECK = 30
"""Seconds between two checks."""

plugin(
    name="backup-first",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"maxSeconds": {"type": "integer", "minimum": 1, "maximum": 604800}},
        "additionalProperties": False,
        "examples": [None, {"maxSeconds": 600}],
    },
)


@configure
def max_seconds(settings: Any) -> int:
    return (settings or {}).get("maxSeconds", 3600)


@eviction_check
def check(binding: Binding, task: EvictionTask) -> EvictionVerdict:
    reports, from_cluster, since = binding.observed, task.from_cluster, task.since_s
    phases = zip(reports.clusters(), reports.text("/backup/phase"))
    phase = next((phase for cluster, phase in phases if cluster == from_cluster and phase), "missing")
    if phase == "Completed":
        return EvictionVerdict.release("BackupCompleted")
    message = f"the backup in {from_cluster} is {phase}"
    left = RECHECK if since is None else config() - (int(now().timestamp()) - since)
    if left <= 0:
        return EvictionVerdict.release("BackupOverdue", f"{message} after {config()} s")
    return EvictionVerdict.hold("BackupPending", message, recheck_after_s=min(left, RECHECK))
