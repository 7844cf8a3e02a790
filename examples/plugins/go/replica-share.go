// Reports a StatefulSet as healthy while a share of its replicas is ready.
package main

import (
	"encoding/json"
	"math"

	"replica-share/bulkhead"
)

// settings is the configuration of the plugin.
var settings struct {
	Percent int64 `json:"percent"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "replica-share",
		Version:  "0.1.0",
		Kinds:    []bulkhead.ObjectKind{{APIVersion: "apps/v1", Kind: "StatefulSet"}},
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {"percent": {"type": "integer", "minimum": 1, "maximum": 100}},
			"additionalProperties": false,
			"examples": [null, {"percent": 50}]
		}`,
		Configure: configure,
		Health:    interpret,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Percent = 100
	return json.Unmarshal(config, &settings)
}

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	count := func(pointer string, otherwise int64) int64 {
		value, found := observed.Integer(pointer)
		if !found {
			value = otherwise
		}
		return min(max(value, 0), math.MaxInt32)
	}
	desired, ready := count("/spec/replicas", 1), count("/status/readyReplicas", 0)
	if desired == 0 {
		return bulkhead.IsHealthy("NoReplicas", ""), nil
	}
	needed := (settings.Percent*desired + 99) / 100
	verdict := bulkhead.IsHealthy
	code := "EnoughReplicas"
	if ready < needed {
		verdict, code = bulkhead.IsUnhealthy, "TooFewReplicas"
	}
	return verdict(code, "%d of %d replicas are ready, %d are needed", ready, desired, needed), nil
}
