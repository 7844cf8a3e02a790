//go:build bulkhead_score

package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/score@0.1.0#score
func exportScore(binding, feasible uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		workload, clusters := bindingOf(binding), clustersOf(feasible)
		if registered.Score == nil {
			return missing("Score")
		}
		scores, err := registered.Score(workload, clusters)
		if err == nil {
			setEach(b, 4, 4, scores, func(b block, score uint32) { b.setU32(0, score) })
		}
		return err
	})
}
