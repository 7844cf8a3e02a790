"""Holds an eviction until other healthy copies run in a majority of the zones."""

from typing import Any

from bulkhead import Binding, EvictionTask, EvictionVerdict, Health, config, configure, eviction_check, plugin

plugin(
    name="quorum-by-zone",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"zones": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
        "additionalProperties": False,
        "examples": [None, {"zones": {"member1": "a", "member2": "b", "member3": "c"}}],
    },
)


@configure
def zone_by_cluster(settings: Any) -> dict[str, str]:
    return (settings or {}).get("zones", {})


@eviction_check
def check(binding: Binding, task: EvictionTask) -> EvictionVerdict:
    zones, reports, from_cluster = config(), binding.observed, task.from_cluster
    total = len(set(zones.values()))
    if total == 0:
        return EvictionVerdict.abstain()
    healthy = {
        zones[cluster]
        for cluster, state in zip(reports.clusters(), reports.health())
        if cluster in zones and cluster != from_cluster and state is Health.HEALTHY
    }
    needed = total // 2 + 1
    message = f"healthy copies in {len(healthy)} of {total} zones"
    if len(healthy) >= needed:
        return EvictionVerdict.release("Quorum", message)
    return EvictionVerdict.hold("NoQuorum", f"{message}, {needed} are needed")
