"""Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1."""

from typing import Optional

from bulkhead import Edit, HealthVerdict, Object, Replicas, Requirements, health, interpret, plugin

CPU_MAX = 1_000_000_000
"""Largest processor time of a room in thousandths of a core."""

plugin(name="game-server", version="0.1.0", kinds=[("example.io/v1", "GameServer")], reusable=True)


@health
def interpret_health(observed: Object) -> HealthVerdict:
    phase = observed.text("/status/phase")
    if phase is None:
        return HealthVerdict.unknown("NoPhase")
    if phase == "Running":
        return HealthVerdict.healthy("Running")
    return HealthVerdict.unhealthy("NotRunning", f"its phase is {phase}")


def rooms(server: Object) -> Optional[int]:
    found = server.integer("/spec/rooms")
    return None if found is None else min(max(found, 0), 2**31 - 1)


def with_rooms(server: Object, count: int) -> list[Edit]:
    """Returns the edits that write the rooms of a server."""
    if server.kind("/spec") == "map":
        return [Edit.set("/spec/rooms", count)]
    return [Edit.set("/spec", {"rooms": count})]


@interpret.replicas
def replicas(template: Object) -> Replicas:
    milli = template.quantity_milli("/spec/roomCpu") or 0
    requirements = Requirements(requests={"cpu": f"{min(milli, CPU_MAX)}m"}) if milli > 0 else None
    return Replicas(rooms(template) or 0, requirements)


@interpret.revise_replicas
def revise_replicas(template: Object, replicas: int) -> list[Edit]:
    return with_rooms(template, replicas)


@interpret.retain
def retain(desired: Object, observed: Object) -> list[Edit]:
    count = rooms(observed)
    if observed.boolean("/spec/autoscaled") and count is not None:
        return with_rooms(desired, count)
    return []
