// Reports the health of an Argo Rollout from the phase that its controller writes.
package main

import (
	"strconv"

	"rollout-health/bulkhead"
)

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "rollout-health",
		Version:  "0.1.0",
		Kinds:    []bulkhead.ObjectKind{{APIVersion: "argoproj.io/v1alpha1", Kind: "Rollout"}},
		Reusable: true,
		Health:   interpret,
	})
}

func main() {}

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	generation, _ := observed.Integer("/metadata/generation")
	// The controller writes the number as a text.
	seen, found := observed.Text("/status/observedGeneration")
	if !found {
		seen = "0"
	}
	if seen != strconv.FormatInt(generation, 10) {
		return bulkhead.IsUnknown("NotObserved", "the controller has seen generation %s of %d", seen, generation), nil
	}
	phase, _ := observed.Text("/status/phase")
	message, _ := observed.Text("/status/message")
	switch phase {
	case "Healthy", "Paused":
		return bulkhead.IsHealthy(phase, "%s", message), nil
	case "Degraded", "Progressing":
		return bulkhead.IsUnhealthy(phase, "%s", message), nil
	}
	return bulkhead.IsUnknown("UnknownPhase", "%s", message), nil
}
