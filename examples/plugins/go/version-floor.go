// Rejects clusters that run a Kubernetes version below a minimum. A version that cannot be read is left to others.
package main

import (
	"encoding/json"
	"strconv"
	"strings"

	"version-floor/bulkhead"
)

// settings is the configuration of the plugin.
var settings struct {
	Minimum string `json:"minimum"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "version-floor",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {"minimum": {"type": "string", "pattern": "^[0-9]{1,4}[.][0-9]{1,4}$"}},
			"additionalProperties": false,
			"examples": [null, {"minimum": "1.30"}]
		}`,
		Configure: configure,
		Filter:    filter,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Minimum = "1.28"
	return json.Unmarshal(config, &settings)
}

// version returns the major and minor number of a version such as v1.30.2.
func version(text string) (major, minor int, found bool) {
	parts := strings.Split(strings.TrimPrefix(text, "v"), ".")
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, majorErr := strconv.Atoi(parts[0])
	minor, minorErr := strconv.Atoi(parts[1])
	return major, minor, majorErr == nil && minorErr == nil
}

func filter(binding bulkhead.Binding, candidates bulkhead.Clusters) ([]bulkhead.FilterVerdict, error) {
	leastMajor, leastMinor, _ := version(settings.Minimum)
	verdicts := make([]bulkhead.FilterVerdict, candidates.Len())
	for i, text := range candidates.Text("/status/kubernetesVersion") {
		major, minor, found := version(text.Value)
		switch {
		case !found:
			verdicts[i] = bulkhead.NoFilterOpinion
		case major > leastMajor || major == leastMajor && minor >= leastMinor:
			verdicts[i] = bulkhead.Fit
		default:
			reason := bulkhead.Because("VersionTooOld", "it runs %s, and %s is needed", text.Value, settings.Minimum)
			verdicts[i] = bulkhead.Unfit(reason)
		}
	}
	return verdicts, nil
}
