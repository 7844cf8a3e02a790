// Lets workloads run only on clusters with the configured labels.
package main

import (
	"encoding/json"

	"label-filter/bulkhead"
)

// settings is the configuration of the plugin.
var settings struct {
	Labels []struct {
		Key string `json:"key"`
		// Any value fits if it is nil.
		Value *string `json:"value"`
	} `json:"labels"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "label-filter",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {
				"labels": {
					"type": "array",
					"items": {
						"type": "object",
						"properties": {"key": {"type": "string", "minLength": 1}, "value": {"type": "string"}},
						"required": ["key"],
						"additionalProperties": false
					}
				}
			},
			"additionalProperties": false,
			"examples": [null, {"labels": [{"key": "tier", "value": "gold"}, {"key": "example.io/audited"}]}]
		}`,
		Configure: configure,
		Filter:    filter,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Labels = nil
	return json.Unmarshal(config, &settings)
}

func filter(binding bulkhead.Binding, candidates bulkhead.Clusters) ([]bulkhead.FilterVerdict, error) {
	verdicts := make([]bulkhead.FilterVerdict, candidates.Len())
	for i := range verdicts {
		verdicts[i] = bulkhead.Fit
	}
	// The first label that a cluster lacks is the reason.
	for _, label := range settings.Labels {
		for i, found := range candidates.Label(label.Key) {
			switch {
			case !verdicts[i].Fits():
			case !found.Found:
				verdicts[i] = bulkhead.Unfit(bulkhead.Because("LabelMissing", "no label %s", label.Key))
			case label.Value != nil && found.Value != *label.Value:
				reason := bulkhead.Because("LabelDiffers", "label %s is %s, not %s", label.Key, found.Value, *label.Value)
				verdicts[i] = bulkhead.Unfit(reason)
			}
		}
	}
	return verdicts, nil
}
