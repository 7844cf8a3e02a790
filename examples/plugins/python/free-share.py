"""Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported."""

from typing import Any, Optional

from bulkhead import Binding, Clusters, config, configure, plugin, scheduler_score

plugin(
    name="free-share",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"resource": {"type": "string", "minLength": 1}},
        "additionalProperties": False,
        "examples": [None, {"resource": "memory"}],
    },
)


@configure
def resource(settings: Any) -> str:
    return (settings or {}).get("resource", "cpu")


def share(free: Optional[float], all_: Optional[float]) -> int:
    return int(min(max(100 * free / all_, 0), 100)) if all_ and free is not None else 0


@scheduler_score
def score(binding: Binding, feasible: Clusters) -> list[int]:
    name = config()
    return [share(free, all_) for free, all_ in zip(feasible.free(name), feasible.allocatable(name))]
