//go:build bulkhead_health

package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/health@0.1.0#interpret
func exportHealth(observed uint32) unsafe.Pointer {
	return during(24, func(b block) error {
		object := objectOf(observed)
		if registered.Health == nil {
			return missing("Health")
		}
		verdict, err := registered.Health(object)
		if err == nil {
			b.setU8(4, uint8(verdict.State))
			b.setReason(8, verdict.Reason)
		}
		return err
	})
}
