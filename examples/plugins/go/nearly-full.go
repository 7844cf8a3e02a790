// Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again.
package main

import (
	"encoding/json"

	"nearly-full/bulkhead"
)

const key = "example.io/nearly-full"

// settings is the configuration of the plugin.
var settings struct {
	AddAt       int `json:"addAtPercent"`
	RemoveBelow int `json:"removeBelowPercent"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:      "nearly-full",
		Version:   "0.1.0",
		TaintKeys: []string{key},
		Reusable:  true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {
				"addAtPercent": {"type": "integer", "minimum": 1, "maximum": 100},
				"removeBelowPercent": {"type": "integer", "minimum": 1, "maximum": 100}
			},
			"additionalProperties": false,
			"examples": [null, {"addAtPercent": 95, "removeBelowPercent": 80}]
		}`,
		Configure:    configure,
		ClusterTaint: decide,
	})
}

func main() {}

func configure(config []byte) error {
	settings.AddAt, settings.RemoveBelow = 90, 75
	return json.Unmarshal(config, &settings)
}

func decide(cluster bulkhead.Cluster) ([]bulkhead.TaintChange, error) {
	document := cluster.Document()
	allocatable, _ := document.QuantityMilli("/status/resourceSummary/allocatable/pods")
	allocated, _ := document.QuantityMilli("/status/resourceSummary/allocated/pods")
	if allocatable <= 0 {
		return nil, nil
	}
	used := int(min(100*float64(max(allocated, 0))/float64(allocatable), 999))
	isTainted := false
	for _, taint := range cluster.Taints() {
		isTainted = isTainted || taint.Key == key
	}
	switch {
	case !isTainted && used >= settings.AddAt:
		reason := bulkhead.Because("NearlyFull", "%d %% of the pods are in use", used)
		return []bulkhead.TaintChange{bulkhead.AddTaint(key, bulkhead.PreferNoSchedule, reason)}, nil
	case isTainted && used < settings.RemoveBelow:
		reason := bulkhead.Because("RoomForPods", "%d %% of the pods are in use", used)
		return []bulkhead.TaintChange{bulkhead.RemoveTaint(key, bulkhead.PreferNoSchedule, reason)}, nil
	}
	return nil, nil
}
