// Interprets stages, secrets, status and health of a Pipeline of example.io/v1.
package main

import (
	"encoding/json"
	"fmt"
	"math"

	"pipeline/bulkhead"
)

// recordsMax is the largest number of records that a cluster can report.
const recordsMax = 1e12

// status of a pipeline, in one cluster or in all.
type status struct {
	Phase   *string `json:"phase,omitempty"`
	Records *int64  `json:"records,omitempty"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:            "pipeline",
		Version:         "0.1.0",
		Kinds:           []bulkhead.ObjectKind{{APIVersion: "example.io/v1", Kind: "Pipeline"}},
		Reusable:        true,
		Health:          interpret,
		Components:      components,
		ReflectStatus:   reflectStatus,
		AggregateStatus: aggregateStatus,
		Dependencies:    dependencies,
	})
}

func main() {}

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	switch phase, _ := observed.Text("/status/phase"); phase {
	case "Running", "Done":
		return bulkhead.IsHealthy(phase, ""), nil
	case "Failed":
		return bulkhead.IsUnhealthy(phase, ""), nil
	}
	return bulkhead.IsUnknown("UnknownPhase", ""), nil
}

func components(template bulkhead.Object) ([]bulkhead.Component, error) {
	var found []bulkhead.Component
	seen := make(map[string]bool)
	workers := template.Each("/spec/stages", "/workers")
	for i, value := range template.Each("/spec/stages", "/name") {
		name, _ := value.(string)
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		replicas, isInteger := workers[i].(int64)
		if !isInteger {
			replicas = 1
		}
		replicas = min(max(replicas, 0), math.MaxInt32)
		found = append(found, bulkhead.Component{Name: name, Replicas: int32(replicas)})
	}
	return found, nil
}

func reflectStatus(observed bulkhead.Object) ([]byte, error) {
	var found status
	if phase, isText := observed.Text("/status/phase"); isText {
		found.Phase = &phase
	}
	if records, isInteger := observed.Integer("/status/records"); isInteger {
		found.Records = &records
	}
	if found == (status{}) {
		return nil, nil
	}
	return json.Marshal(found)
}

func aggregateStatus(template bulkhead.Object, reports bulkhead.Observations) ([]bulkhead.Edit, error) {
	sum, hasFailed, isDone := int64(0), false, reports.Len() > 0
	for _, records := range reports.Number("/records") {
		if records > 0 {
			sum += int64(min(records, recordsMax))
		}
	}
	for _, phase := range reports.Text("/phase") {
		hasFailed = hasFailed || phase.Value == "Failed"
		isDone = isDone && phase.Value == "Done"
	}
	phase := "Running"
	switch {
	case hasFailed:
		phase = "Failed"
	case isDone:
		phase = "Done"
	}
	return []bulkhead.Edit{bulkhead.Set("/status", fmt.Sprintf(`{"phase": %q, "records": %d}`, phase, sum))}, nil
}

func dependencies(template bulkhead.Object) ([]bulkhead.Dependency, error) {
	var found []bulkhead.Dependency
	namespace, _ := template.Text("/metadata/namespace")
	for _, value := range template.Each("/spec/stages", "/secret") {
		if name, _ := value.(string); name != "" {
			secret := bulkhead.Dependency{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: name}
			found = append(found, secret)
		}
	}
	return found, nil
}
