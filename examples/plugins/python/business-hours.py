"""Holds evictions in business hours, Monday to Friday in UTC."""

from typing import Any

from bulkhead import Binding, EvictionTask, EvictionVerdict, config, configure, eviction_check, now, plugin

HOUR = {"type": "integer", "minimum": 0, "maximum": 24}

plugin(
    name="business-hours",
    version="0.1.0",
    reusable=True,
    config_schema={
        "type": ["object", "null"],
        "properties": {"open": HOUR, "close": HOUR},
        "additionalProperties": False,
        "examples": [None, {"open": 7, "close": 20}],
    },
)


@configure
def hours(settings: Any) -> tuple[int, int]:
    settings = settings or {}
    return settings.get("open", 8), settings.get("close", 18)


@eviction_check
def check(binding: Binding, task: EvictionTask) -> EvictionVerdict:
    open_, close = config()
    time = now()
    second = time.hour * 3600 + time.minute * 60 + time.second
    if time.weekday() >= 5 or not open_ * 3600 <= second < close * 3600:
        return EvictionVerdict.release("OutOfHours")
    message = f"evictions wait until {close:02}:00 UTC"
    return EvictionVerdict.hold("BusinessHours", message, recheck_after_s=close * 3600 - second)
