"""Interprets replicas and health of a custom resource, here a Game of example.io/v1."""

from bulkhead import Edit, HealthVerdict, Object, Replicas, health, interpret, plugin

plugin(name="{{name}}", version="0.1.0", kinds=[("example.io/v1", "Game")], reusable=True)


@health
def interpret_health(observed: Object) -> HealthVerdict:
    phase = observed.text("/status/phase")
    if phase is None:
        return HealthVerdict.unknown("NoPhase")
    if phase == "Running":
        return HealthVerdict.healthy("Running")
    return HealthVerdict.unhealthy("NotRunning", f"its phase is {phase}")


@interpret.replicas
def replicas(template: Object) -> Replicas:
    rooms = template.integer("/spec/rooms") or 0
    return Replicas(count=min(max(rooms, 0), 2**31 - 1))


@interpret.revise_replicas
def revise_replicas(template: Object, replicas: int) -> list[Edit]:
    if template.kind("/spec") == "map":
        return [Edit.set("/spec/rooms", replicas)]
    return [Edit.set("/spec", {"rooms": replicas})]
