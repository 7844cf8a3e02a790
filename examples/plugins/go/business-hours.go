// Holds evictions in business hours, Monday to Friday in UTC.
package main

import (
	"encoding/json"
	"time"

	"business-hours/bulkhead"
)

// settings is the configuration of the plugin.
var settings struct {
	Open  int `json:"open"`
	Close int `json:"close"`
}

func init() {
	bulkhead.Register(bulkhead.Plugin{
		Name:     "business-hours",
		Version:  "0.1.0",
		Reusable: true,
		ConfigSchema: `{
			"type": ["object", "null"],
			"properties": {
				"open": {"type": "integer", "minimum": 0, "maximum": 24},
				"close": {"type": "integer", "minimum": 0, "maximum": 24}
			},
			"additionalProperties": false,
			"examples": [null, {"open": 7, "close": 20}]
		}`,
		Configure:     configure,
		EvictionCheck: check,
	})
}

func main() {}

func configure(config []byte) error {
	settings.Open, settings.Close = 8, 18
	return json.Unmarshal(config, &settings)
}

func check(binding bulkhead.Binding, task bulkhead.EvictionTask) (bulkhead.EvictionVerdict, error) {
	now := bulkhead.Now()
	second := now.Hour()*3600 + now.Minute()*60 + now.Second()
	isWorkday := now.Weekday() >= time.Monday && now.Weekday() <= time.Friday
	if !isWorkday || second < settings.Open*3600 || second >= settings.Close*3600 {
		return bulkhead.Release(bulkhead.Because("OutOfHours", "")), nil
	}
	reason := bulkhead.Because("BusinessHours", "evictions wait until %02d:00 UTC", settings.Close)
	return bulkhead.HoldFor(reason, time.Duration(settings.Close*3600-second)*time.Second), nil
}
