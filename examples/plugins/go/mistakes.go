// Makes the mistake that the object names, and has no function for scores although its build.yaml has the kind.
package main

import (
	"fmt"
	"os"

	"mistakes/bulkhead"
)

func init() {
	bulkhead.Register(bulkhead.Plugin{Name: "mistakes", Version: "0.1.0", Health: interpret})
}

func main() {}

var kept [][]byte

func interpret(observed bulkhead.Object) (bulkhead.HealthVerdict, error) {
	switch mistake, _ := observed.Text("/spec/mistake"); mistake {
	case "exception":
		return bulkhead.HealthVerdict{}, fmt.Errorf("spec.replicas must be positive")
	case "wrong type":
		return bulkhead.HealthVerdict{State: 7}, nil
	case "endless loop":
		for {
		}
	case "memory":
		for {
			kept = append(kept, make([]byte, 10_000_000))
		}
	case "exit":
		var replicas []int
		fmt.Fprintln(os.Stderr, "replica", replicas[3])
	}
	return bulkhead.IsUnknown("NoMistake", ""), nil
}
