"""Lets workloads run only on clusters with the configured labels."""

from typing import Any, Optional

from bulkhead import Binding, Clusters, FilterVerdict, config, configure, plugin, scheduler_filter

plugin(
    name="label-filter",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {
            "labels": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"key": {"type": "string", "minLength": 1}, "value": {"type": "string"}},
                    "required": ["key"],
                    "additionalProperties": False,
                },
            }
        },
        "additionalProperties": False,
        "examples": [None, {"labels": [{"key": "tier", "value": "gold"}, {"key": "example.io/audited"}]}],
    },
)


@configure
def required(settings: Any) -> list[tuple[str, Optional[str]]]:
    labels = (settings or {}).get("labels", [])
    return [(label["key"], label.get("value")) for label in labels]


@scheduler_filter
def filter_clusters(binding: Binding, candidates: Clusters) -> list[FilterVerdict]:
    verdicts = [FilterVerdict.fit()] * len(candidates)
    # The first label that a cluster lacks is the reason.
    for key, value in config():
        for i, found in enumerate(candidates.label(key)):
            if not verdicts[i].fits:
                continue
            if found is None:
                verdicts[i] = FilterVerdict.unfit("LabelMissing", f"no label {key}")
            elif value is not None and found != value:
                verdicts[i] = FilterVerdict.unfit("LabelDiffers", f"label {key} is {found}, not {value}")
    return verdicts
