// Reports the health of a cert-manager Certificate from its conditions.
package main

import (
	"fmt"
	"slices"

	"certificate-health/bulkhead"
)

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "certificate-health",
		Version:  "0.1.0",
		Kinds:    []bulkhead.ObjectKind{{APIVersion: "cert-manager.io/v1", Kind: "Certificate"}},
		Reusable: true,
		Health:   interpret,
	})
}

func main() {}

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	types := observed.Each("/status/conditions", "/type")
	ready, issuing := slices.Index(types, any("Ready")), slices.Index(types, any("Issuing"))
	text := func(condition int, field string) string {
		found, _ := observed.Text(fmt.Sprintf("/status/conditions/%d/%s", condition, field))
		return found
	}
	if ready < 0 {
		return bulkhead.IsUnknown("NotObserved", "there is no condition Ready"), nil
	}
	generation, _ := observed.Integer("/metadata/generation")
	seen, found := observed.Integer(fmt.Sprintf("/status/conditions/%d/observedGeneration", ready))
	if found && seen < generation {
		return bulkhead.IsUnknown("NotObserved", "the condition is about generation %d of %d", seen, generation), nil
	}
	message := text(ready, "message")
	switch text(ready, "status") {
	case "True":
		return bulkhead.IsHealthy("Ready", "%s", message), nil
	case "False":
		if issuing >= 0 && text(issuing, "status") == "True" {
			return bulkhead.IsUnknown("Issuing", "%s", text(issuing, "message")), nil
		}
		return bulkhead.IsUnhealthy("NotReady", "%s", message), nil
	}
	return bulkhead.IsUnknown("ReadyUnknown", "%s", message), nil
}
