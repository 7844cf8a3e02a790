// Holds an eviction until the old copy reports a complete backup, or until that takes too long.
package main

import (
	"encoding/json"
	"time"

	"backup-first/bulkhead"
)

// recheck is the time between two checks.
const recheck = 30 * time.Second

// settings is the configuration of the plugin.
var settings struct {
	MaxSeconds int `json:"maxSeconds"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "backup-first",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {"maxSeconds": {"type": "integer", "minimum": 1, "maximum": 604800}},
			"additionalProperties": false,
			"examples": [null, {"maxSeconds": 600}]
		}`,
		Configure:     configure,
		EvictionCheck: check,
	})
}

func main() {}

func configure(config []byte) error {
	settings.MaxSeconds = 3600
	return json.Unmarshal(config, &settings)
}

func check(binding bulkhead.Binding, task bulkhead.EvictionTask) (bulkhead.EvictionVerdict, error) {
	from, reports, phase := task.FromCluster(), binding.Observed(), ""
	phases := reports.Text("/backup/phase")
	for i, cluster := range reports.Clusters() {
		if cluster == from && phase == "" {
			phase = phases[i].Value
		}
	}
	switch phase {
	case "Completed":
		return bulkhead.Release(bulkhead.Because("BackupCompleted", "")), nil
	case "":
		phase = "missing"
	}
	left := recheck
	if since, found := task.Since(); found {
		left = time.Duration(settings.MaxSeconds)*time.Second - bulkhead.Now().Sub(since)
	}
	if left <= 0 {
		message := "the backup in %s is %s after %d s"
		return bulkhead.Release(bulkhead.Because("BackupOverdue", message, from, phase, settings.MaxSeconds)), nil
	}
	reason := bulkhead.Because("BackupPending", "the backup in %s is %s", from, phase)
	return bulkhead.HoldFor(reason, min(left, recheck)), nil
}
