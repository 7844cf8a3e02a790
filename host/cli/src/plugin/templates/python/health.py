"""Reports the health of a Deployment."""

from bulkhead import HealthVerdict, Object, health, plugin

plugin(name="{{name}}", version="0.1.0", kinds=[("apps/v1", "Deployment")], reusable=True)


@health
def interpret(observed: Object) -> HealthVerdict:
    desired = observed.integer("/spec/replicas")
    if desired is None:
        return HealthVerdict.unknown("NoReplicas", "spec.replicas is missing or not a number")
    ready = observed.integer("/status/readyReplicas") or 0
    message = f"{ready} of {desired} replicas are ready"
    if ready >= desired:
        return HealthVerdict.healthy("Ready", message)
    return HealthVerdict.unhealthy("NotReady", message)
