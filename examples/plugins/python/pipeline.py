"""Interprets stages, secrets, status and health of a Pipeline of example.io/v1."""

from typing import Any

from bulkhead import Component, Dependency, Edit, HealthVerdict, Object, Observations, health, interpret, plugin

RECORDS_MAX = 10**12
"""Largest number of records that a cluster can report."""

plugin(name="pipeline", version="0.1.0", kinds=[("example.io/v1", "Pipeline")], reusable=True)


@health
def interpret_health(observed: Object) -> HealthVerdict:
    phase = observed.text("/status/phase")
    if phase in ("Running", "Done"):
        return HealthVerdict.healthy(phase)
    if phase == "Failed":
        return HealthVerdict.unhealthy(phase)
    return HealthVerdict.unknown("UnknownPhase")


def is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


@interpret.components
def components(template: Object) -> list[Component]:
    names, workers = (template.each("/spec/stages", pointer) for pointer in ("/name", "/workers"))
    found: dict[str, Component] = {}
    for name, count in zip(names, workers):
        if is_text(name) and name not in found:
            is_integer = isinstance(count, int) and not isinstance(count, bool)
            found[name] = Component(name, min(max(count, 0), 2**31 - 1) if is_integer else 1)
    return list(found.values())


@interpret.reflect_status
def reflect_status(observed: Object) -> Any:
    status = {"phase": observed.text("/status/phase"), "records": observed.integer("/status/records")}
    return {name: value for name, value in status.items() if value is not None} or None


@interpret.aggregate_status
def aggregate_status(template: Object, reports: Observations) -> list[Edit]:
    phases = reports.text("/phase")
    records = sum(int(min(max(records or 0, 0), RECORDS_MAX)) for records in reports.number("/records"))
    if "Failed" in phases:
        phase = "Failed"
    else:
        phase = "Done" if phases and all(phase == "Done" for phase in phases) else "Running"
    return [Edit.set("/status", {"phase": phase, "records": records})]


@interpret.dependencies
def dependencies(template: Object) -> list[Dependency]:
    namespace = template.text("/metadata/namespace") or ""
    secrets = template.each("/spec/stages", "/secret")
    return [Dependency("v1", "Secret", namespace, name=name) for name in secrets if is_text(name)]
