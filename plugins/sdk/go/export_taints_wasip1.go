//go:build bulkhead_taints

package bulkhead

import "unsafe"

//go:wasmexport bulkhead:policy/taints@0.1.0#decide
func exportTaints(cluster uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		input := clusterOf(cluster)
		if registered.ClusterTaint == nil {
			return missing("ClusterTaint")
		}
		changes, err := registered.ClusterTaint(input)
		if err == nil {
			setEach(b, 4, 40, changes, setTaintChange)
		}
		return err
	})
}

func setTaintChange(b block, change TaintChange) {
	b.setText(4, change.Key)
	if change.removes {
		b.setU8(0, 1)
		b.setU8(12, uint8(change.Effect))
		b.setReason(16, change.Reason)
		return
	}
	b.setText(12, change.Value)
	b.setU8(20, uint8(change.Effect))
	b.setReason(24, change.Reason)
}
