//go:build bulkhead_eviction

package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/eviction@0.1.0#check
func exportEviction(binding, task uint32) unsafe.Pointer {
	return during(32, func(b block) error {
		workload, copy := bindingOf(binding), taskOf(task)
		if registered.EvictionCheck == nil {
			return missing("EvictionCheck")
		}
		verdict, err := registered.EvictionCheck(workload, copy)
		if err != nil {
			return err
		}
		b.setU8(4, verdict.kind)
		if verdict.kind < 2 {
			b.setReason(8, verdict.Reason)
		}
		if verdict.recheck != nil {
			b.setU8(24, 1)
			b.setU32(28, *verdict.recheck)
		}
		return nil
	})
}
