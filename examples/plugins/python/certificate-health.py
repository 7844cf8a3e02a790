"""Reports the health of a cert-manager Certificate from its conditions."""

from bulkhead import HealthVerdict, Object, health, plugin

plugin(name="certificate-health", version="0.1.0", kinds=[("cert-manager.io/v1", "Certificate")], reusable=True)


@health
def interpret(observed: Object) -> HealthVerdict:
    types = observed.each("/status/conditions", "/type")

    def text(name: str, field: str) -> str:
        return observed.text(f"/status/conditions/{types.index(name)}/{field}") or ""

    if "Ready" not in types:
        return HealthVerdict.unknown("NotObserved", "there is no condition Ready")
    generation = observed.integer("/metadata/generation") or 0
    seen = observed.integer(f"/status/conditions/{types.index('Ready')}/observedGeneration")
    if seen is not None and seen < generation:
        message = f"the condition is about generation {seen} of {generation}"
        return HealthVerdict.unknown("NotObserved", message)
    status, message = text("Ready", "status"), text("Ready", "message")
    if status == "True":
        return HealthVerdict.healthy("Ready", message)
    if status != "False":
        return HealthVerdict.unknown("ReadyUnknown", message)
    if "Issuing" in types and text("Issuing", "status") == "True":
        return HealthVerdict.unknown("Issuing", text("Issuing", "message"))
    return HealthVerdict.unhealthy("NotReady", message)
