"""Reports the health of an Argo Rollout from the phase that its controller writes."""

from bulkhead import HealthVerdict, Object, health, plugin

plugin(name="rollout-health", version="0.1.0", kinds=[("argoproj.io/v1alpha1", "Rollout")], reusable=True)


@health
def interpret(observed: Object) -> HealthVerdict:
    generation = observed.integer("/metadata/generation") or 0
    # The controller writes the number as a text.
    seen = observed.text("/status/observedGeneration") or "0"
    if seen != str(generation):
        return HealthVerdict.unknown("NotObserved", f"the controller has seen generation {seen} of {generation}")
    phase, message = observed.text("/status/phase"), observed.text("/status/message") or ""
    if phase in ("Healthy", "Paused"):
        return HealthVerdict.healthy(phase, message)
    if phase in ("Degraded", "Progressing"):
        return HealthVerdict.unhealthy(phase, message)
    return HealthVerdict.unknown("UnknownPhase", message)
