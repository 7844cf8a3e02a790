// Taints a cluster whose condition Ready keeps changing, and removes the taint when it has been stable for a while.
package main

import (
	"encoding/json"
	"time"

	"condition-history/bulkhead"
)

const key = "example.io/flapping"

// settings is the configuration of the plugin.
var settings struct {
	Changes       int `json:"changes"`
	WindowSeconds int `json:"windowSeconds"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:      "condition-history",
		Version:   "0.1.0",
		TaintKeys: []string{key},
		Reusable:  true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {
				"changes": {"type": "integer", "minimum": 1, "maximum": 7},
				"windowSeconds": {"type": "integer", "minimum": 1, "maximum": 86400}
			},
			"additionalProperties": false,
			"examples": [null, {"changes": 5, "windowSeconds": 3600}]
		}`,
		Configure:    configure,
		ClusterTaint: decide,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Changes, settings.WindowSeconds = 3, 600
	return json.Unmarshal(config, &settings)
}

func decide(cluster bulkhead.Cluster) ([]bulkhead.TaintChange, error) {
	start, recent := bulkhead.Now().Add(-time.Duration(settings.WindowSeconds)*time.Second), 0
	for i, value := range cluster.Document().Each("/conditionHistory/Ready", "/since") {
		text, _ := value.(string)
		since, err := time.Parse(time.RFC3339, text)
		// The first entry is the start of the history.
		if i > 0 && err == nil && since.After(start) {
			recent++
		}
	}
	ready, _ := cluster.Condition("Ready")
	isReady, isTainted := ready.Name != "" && ready.Status == bulkhead.True, false
	for _, taint := range cluster.Taints() {
		isTainted = isTainted || taint.Key == key
	}
	switch {
	case !isTainted && recent >= settings.Changes:
		message := "the condition Ready has changed %d times in %d s"
		reason := bulkhead.Because("Flapping", message, recent, settings.WindowSeconds)
		return []bulkhead.TaintChange{bulkhead.AddTaint(key, bulkhead.NoSchedule, reason)}, nil
	case isTainted && isReady && recent == 0:
		reason := bulkhead.Because("Stable", "the condition Ready has not changed in %d s", settings.WindowSeconds)
		return []bulkhead.TaintChange{bulkhead.RemoveTaint(key, bulkhead.NoSchedule, reason)}, nil
	}
	return nil, nil
}
