"""Lets workloads run only on clusters with a label."""

from typing import Any

from bulkhead import Binding, Clusters, FilterVerdict, config, configure, plugin, scheduler_filter

plugin(
    name="{{name}}",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"key": {"type": "string", "minLength": 1}},
        "additionalProperties": False,
        "examples": [None, {"key": "tier"}],
    },
)


@configure
def label_key(settings: Any) -> str:
    return (settings or {}).get("key", "example.io/allowed")


@scheduler_filter
def filter_clusters(binding: Binding, candidates: Clusters) -> list[FilterVerdict]:
    key = config()
    missing = FilterVerdict.unfit("NoLabel", f"no label {key}")
    return [missing if label is None else FilterVerdict.fit() for label in candidates.label(key)]
