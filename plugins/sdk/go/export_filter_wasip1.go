//go:build bulkhead_filter

package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/filter@0.1.0#filter
func exportFilter(binding, candidates uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		workload, clusters := bindingOf(binding), clustersOf(candidates)
		if registered.Filter == nil {
			return missing("Filter")
		}
		verdicts, err := registered.Filter(workload, clusters)
		if err == nil {
			setEach(b, 4, 20, verdicts, func(b block, verdict FilterVerdict) {
				b.setU8(0, verdict.kind)
				if verdict.kind == 1 {
					b.setReason(4, verdict.Reason)
				}
			})
		}
		return err
	})
}
