// Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported.
package main

import (
	"encoding/json"

	"free-share/bulkhead"
)

// settings is the configuration of the plugin.
var settings struct {
	Resource string `json:"resource"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "free-share",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {"resource": {"type": "string", "minLength": 1}},
			"additionalProperties": false,
			"examples": [null, {"resource": "memory"}]
		}`,
		Configure: configure,
		Score:     score,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Resource = "cpu"
	return json.Unmarshal(config, &settings)
}

func score(binding bulkhead.Binding, feasible bulkhead.Clusters) ([]uint32, error) {
	scores := make([]uint32, feasible.Len())
	free := feasible.Free(settings.Resource)
	for i, all := range feasible.Allocatable(settings.Resource) {
		if all > 0 {
			scores[i] = uint32(min(max(100*free[i]/all, 0), 100))
		}
	}
	return scores, nil
}
