"""Prefers clusters of one region."""

from typing import Any

from bulkhead import Binding, Clusters, config, configure, plugin, scheduler_score

plugin(
    name="{{name}}",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"region": {"type": "string"}},
        "additionalProperties": False,
        "examples": [None, {"region": "us-east"}],
    },
)


@configure
def preferred_region(settings: Any) -> str:
    return (settings or {}).get("region", "eu-west")


@scheduler_score
def score(binding: Binding, feasible: Clusters) -> list[int]:
    return [100 if region == config() else 0 for region in feasible.regions()]
