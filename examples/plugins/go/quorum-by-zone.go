// Holds an eviction until other healthy copies run in a majority of the zones.
package main

import (
	"encoding/json"

	"quorum-by-zone/bulkhead"
)

// settings is the configuration of the plugin: the zone by name of the cluster.
var settings struct {
	Zones map[string]string `json:"zones"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "quorum-by-zone",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {"zones": {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}}},
			"additionalProperties": false,
			"examples": [null, {"zones": {"member1": "a", "member2": "b", "member3": "c"}}]
		}`,
		Configure:     configure,
		EvictionCheck: check,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Zones = nil
	return json.Unmarshal(config, &settings)
}

func check(binding bulkhead.Binding, task bulkhead.EvictionTask) (bulkhead.EvictionVerdict, error) {
	all, healthy := make(map[string]bool), make(map[string]bool)
	for _, zone := range settings.Zones {
		all[zone] = true
	}
	if len(all) == 0 {
		return bulkhead.NoEvictionOpinion, nil
	}
	reports, from := binding.Observed(), task.FromCluster()
	states := reports.Health()
	for i, cluster := range reports.Clusters() {
		isHealthy := states[i].Found && states[i].Value == bulkhead.Healthy
		if zone := settings.Zones[cluster]; zone != "" && cluster != from && isHealthy {
			healthy[zone] = true
		}
	}
	if needed := len(all)/2 + 1; len(healthy) < needed {
		message := "healthy copies in %d of %d zones, %d are needed"
		return bulkhead.Hold(bulkhead.Because("NoQuorum", message, len(healthy), len(all), needed)), nil
	}
	return bulkhead.Release(bulkhead.Because("Quorum", "healthy copies in %d of %d zones", len(healthy), len(all))), nil
}
