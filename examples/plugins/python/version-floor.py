"""Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others."""

from typing import Any, Optional

from bulkhead import Binding, Clusters, FilterVerdict, config, configure, plugin, scheduler_filter

plugin(
    name="version-floor",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"minimum": {"type": "string", "pattern": "^[0-9]{1,4}[.][0-9]{1,4}$"}},
        "additionalProperties": False,
        "examples": [None, {"minimum": "1.30"}],
    },
)


@configure
def minimum(settings: Any) -> str:
    return (settings or {}).get("minimum", "1.28")


def version(text: Optional[str]) -> Optional[tuple[int, int]]:
    """Returns the major and minor number of a version such as ``v1.30.2``; None if it is no version."""
    parts = (text or "").removeprefix("v").split(".")
    if len(parts) < 2 or not all(part.isdecimal() and len(part) <= 4 for part in parts[:2]):
        return None
    return int(parts[0]), int(parts[1])


@scheduler_filter
def filter_clusters(binding: Binding, candidates: Clusters) -> list[FilterVerdict]:
    least = version(config())

    def verdict(text: Optional[str]) -> FilterVerdict:
        found = version(text)
        if found is None:
            return FilterVerdict.abstain()
        if found >= least:
            return FilterVerdict.fit()
        return FilterVerdict.unfit("VersionTooOld", f"it runs {text}, and {config()} is needed")

    return [verdict(text) for text in candidates.text("/status/kubernetesVersion")]
