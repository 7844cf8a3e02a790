"""Makes the mistake that the object names, and has no function for scores although its build.yaml has the kind."""

import os

from bulkhead import HealthVerdict, Object, health, plugin

plugin(name="mistakes", version="0.1.0")


@health
def interpret(observed: Object) -> HealthVerdict:
    mistake = observed.text("/spec/mistake")
    if mistake == "exception":
        return HealthVerdict.healthy("Ready", f"{1 // int(observed.integer('/spec/replicas') or 0)}")
    if mistake == "wrong type":
        return True  # type: ignore[return-value]
    if mistake == "endless loop":
        while True:
            pass
    if mistake == "memory":
        return HealthVerdict.healthy("x" * 200_000_000)
    if mistake == "exit":
        os._exit(1)
    return HealthVerdict.unknown("NoMistake")
