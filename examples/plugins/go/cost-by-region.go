// Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0.
package main

import (
	"encoding/json"

	"cost-by-region/bulkhead"
)

// scores by region, from the prices of the configuration.
var scores map[string]uint32

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "cost-by-region",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {
				"prices": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 1000000}}
			},
			"additionalProperties": false,
			"examples": [null, {"prices": {"eu-west": 40, "us-east": 30}}]
		}`,
		Configure: configure,
		Score:     score,
	})
}

func main() {}

func configure(config []byte) error {
	var settings struct {
		Prices map[string]uint32 `json:"prices"`
	}
	if err := json.Unmarshal(config, &settings); err != nil {
		return bulkhead.InvalidConfig(err.Error())
	}
	cheapest := uint32(0)
	for _, price := range settings.Prices {
		if cheapest == 0 || price < cheapest {
			cheapest = price
		}
	}
	scores = make(map[string]uint32)
	for region, price := range settings.Prices {
		scores[region] = 100 * cheapest / price
	}
	return nil
}

func score(binding bulkhead.Binding, feasible bulkhead.Clusters) ([]uint32, error) {
	found := make([]uint32, feasible.Len())
	for i, region := range feasible.Regions() {
		found[i] = scores[region]
	}
	return found, nil
}
