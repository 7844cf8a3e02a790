// Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1.
package main

import (
	"fmt"
	"math"

	"game-server/bulkhead"
)

// cpuMax is the largest processor time of a room in thousandths of a core.
const cpuMax = 1_000_000_000

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:           "game-server",
		Version:        "0.1.0",
		Kinds:          []bulkhead.ObjectKind{{APIVersion: "example.io/v1", Kind: "GameServer"}},
		Reusable:       true,
		Health:         interpret,
		Replicas:       replicas,
		ReviseReplicas: reviseReplicas,
		Retain:         retain,
	})
}

func main() {}

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	switch phase, found := observed.Text("/status/phase"); {
	case !found:
		return bulkhead.IsUnknown("NoPhase", ""), nil
	case phase == "Running":
		return bulkhead.IsHealthy("Running", ""), nil
	default:
		return bulkhead.IsUnhealthy("NotRunning", "its phase is %s", phase), nil
	}
}

func rooms(server bulkhead.Object) (int32, bool) {
	count, found := server.Integer("/spec/rooms")
	return int32(min(max(count, 0), math.MaxInt32)), found
}

// withRooms returns the edits that write the rooms of a server.
func withRooms(server bulkhead.Object, count int32) []bulkhead.Edit {
	if server.Kind("/spec") == "map" {
		return []bulkhead.Edit{bulkhead.Set("/spec/rooms", fmt.Sprint(count))}
	}
	return []bulkhead.Edit{bulkhead.Set("/spec", fmt.Sprintf(`{"rooms": %d}`, count))}
}

func replicas(template bulkhead.Object) (bulkhead.Replicas, error) {
	count, _ := rooms(template)
	found := bulkhead.Replicas{Count: count}
	if milli, _ := template.QuantityMilli("/spec/roomCpu"); milli > 0 {
		cpu := fmt.Sprintf("%dm", min(milli, cpuMax))
		found.Requirements = &bulkhead.Requirements{Requests: map[string]string{"cpu": cpu}}
	}
	return found, nil
}

func reviseReplicas(template bulkhead.Object, replicas int32) ([]bulkhead.Edit, error) {
	return withRooms(template, replicas), nil
}

func retain(desired, observed bulkhead.Object) ([]bulkhead.Edit, error) {
	isAutoscaled, _ := observed.Boolean("/spec/autoscaled")
	if count, found := rooms(observed); found && isAutoscaled {
		return withRooms(desired, count), nil
	}
	return nil, nil
}
