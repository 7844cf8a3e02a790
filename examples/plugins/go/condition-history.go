// Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer.
package main

import (
	"encoding/json"

	"condition-history/bulkhead"
)

const key = "example.io/unstable"

// settings is the configuration of the plugin.
var settings struct {
	AddAfter    int64 `json:"addAfterSeconds"`
	RemoveAfter int64 `json:"removeAfterSeconds"`
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
				"addAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 86400},
				"removeAfterSeconds": {"type": "integer", "minimum": 0, "maximum": 86400}
			},
			"additionalProperties": false,
			"examples": [null, {"addAfterSeconds": 30, "removeAfterSeconds": 600}]
		}`,
		Configure:    configure,
		ClusterTaint: decide,
	})
}

func main() {}

func configure(config []byte) error {
	settings.AddAfter, settings.RemoveAfter = 60, 300
	return json.Unmarshal(config, &settings)
}

func decide(cluster bulkhead.Cluster) ([]bulkhead.TaintChange, error) {
	ready, found := cluster.Condition("Ready")
	if !found || ready.LastTransition.IsZero() {
		return nil, nil
	}
	age := bulkhead.Now().Unix() - ready.LastTransition.Unix()
	isReady, isTainted := ready.Status == bulkhead.True, false
	for _, taint := range cluster.Taints() {
		isTainted = isTainted || taint.Key == key
	}
	switch {
	case !isReady && !isTainted && age >= settings.AddAfter:
		reason := bulkhead.Because("NotReadyForLong", "not ready for %d s, the limit is %d s", age, settings.AddAfter)
		return []bulkhead.TaintChange{bulkhead.AddTaint(key, bulkhead.NoSchedule, reason)}, nil
	case isReady && isTainted && age >= settings.RemoveAfter:
		reason := bulkhead.Because("ReadyForLong", "ready for %d s, the limit is %d s", age, settings.RemoveAfter)
		return []bulkhead.TaintChange{bulkhead.RemoveTaint(key, bulkhead.NoSchedule, reason)}, nil
	}
	return nil, nil
}
