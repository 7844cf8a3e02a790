"""Reports a StatefulSet as healthy while a share of its replicas is ready."""

from typing import Any

from bulkhead import HealthVerdict, Object, config, configure, health, plugin

plugin(
    name="replica-share",
    version="0.1.0",
    kinds=[("apps/v1", "StatefulSet")],
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"percent": {"type": "integer", "minimum": 1, "maximum": 100}},
        "additionalProperties": False,
        "examples": [None, {"percent": 50}],
    },
)


@configure
def percent(settings: Any) -> int:
    return (settings or {}).get("percent", 100)


@health
def interpret(observed: Object) -> HealthVerdict:
    def count(pointer: str, otherwise: int) -> int:
        value = observed.integer(pointer)
        return min(max(otherwise if value is None else value, 0), 2**31 - 1)

    desired, ready = count("/spec/replicas", 1), count("/status/readyReplicas", 0)
    if desired == 0:
        return HealthVerdict.healthy("NoReplicas")
    needed = (config() * desired + 99) // 100
    message = f"{ready} of {desired} replicas are ready, {needed} are needed"
    if ready >= needed:
        return HealthVerdict.healthy("EnoughReplicas", message)
    return HealthVerdict.unhealthy("TooFewReplicas", message)
