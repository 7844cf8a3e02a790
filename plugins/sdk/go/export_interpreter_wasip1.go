//go:build bulkhead_interpreter

package bulkhead

import (
	"sort"
	"unsafe"
)

func setRequirements(b block, requirements *Requirements) {
	if requirements == nil {
		return
	}
	b.setU8(0, 1)
	names := make([]string, 0, len(requirements.Requests))
	for name := range requirements.Requests {
		names = append(names, name)
	}
	sort.Strings(names)
	setEach(b, 4, 16, names, func(b block, name string) {
		b.setText(0, name)
		b.setText(8, requirements.Requests[name])
	})
	b.setOptionalText(12, requirements.NodeClaim)
	b.setOptionalText(24, requirements.Namespace)
	b.setOptionalText(36, requirements.PriorityClassName)
}

func setEdits(b block, edits []Edit) {
	setEach(b, 4, 20, edits, func(b block, edit Edit) {
		b.setText(4, edit.Pointer)
		if edit.removes {
			b.setU8(0, 1)
			return
		}
		b.setText(12, edit.JSON)
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#interpret-replicas
func exportReplicas(template uint32) unsafe.Pointer {
	return during(56, func(b block) error {
		object := objectOf(template)
		if registered.Replicas == nil {
			return Unsupported
		}
		found, err := registered.Replicas(object)
		if err == nil {
			b.setU32(4, uint32(found.Count))
			setRequirements(b.part(8), found.Requirements)
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#interpret-components
func exportComponents(template uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		object := objectOf(template)
		if registered.Components == nil {
			return Unsupported
		}
		found, err := registered.Components(object)
		if err == nil {
			setEach(b, 4, 60, found, func(b block, component Component) {
				b.setText(0, component.Name)
				b.setU32(8, uint32(component.Replicas))
				setRequirements(b.part(12), component.Requirements)
			})
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#revise-replicas
func exportReviseReplicas(template uint32, replicas int32) unsafe.Pointer {
	return during(16, func(b block) error {
		object := objectOf(template)
		if registered.ReviseReplicas == nil {
			return Unsupported
		}
		edits, err := registered.ReviseReplicas(object, replicas)
		if err == nil {
			setEdits(b, edits)
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#retain
func exportRetain(desired, observed uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		wanted, found := objectOf(desired), objectOf(observed)
		if registered.Retain == nil {
			return Unsupported
		}
		edits, err := registered.Retain(wanted, found)
		if err == nil {
			setEdits(b, edits)
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#reflect-status
func exportReflectStatus(observed uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		object := objectOf(observed)
		if registered.ReflectStatus == nil {
			return Unsupported
		}
		status, err := registered.ReflectStatus(object)
		if err == nil {
			b.setOptionalText(4, string(status))
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#aggregate-status
func exportAggregateStatus(template, reports uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		object, observed := objectOf(template), observationsOf(reports)
		if registered.AggregateStatus == nil {
			return Unsupported
		}
		edits, err := registered.AggregateStatus(object, observed)
		if err == nil {
			setEdits(b, edits)
		}
		return err
	})
}

//go:wasmexport bulkhead:policy/interpreter@0.1.0#interpret-dependencies
func exportDependencies(template uint32) unsafe.Pointer {
	return during(16, func(b block) error {
		object := objectOf(template)
		if registered.Dependencies == nil {
			return Unsupported
		}
		found, err := registered.Dependencies(object)
		if err == nil {
			setEach(b, 4, 48, found, func(b block, dependency Dependency) {
				b.setText(0, dependency.APIVersion)
				b.setText(8, dependency.Kind)
				b.setText(16, dependency.Namespace)
				b.setOptionalText(24, dependency.Name)
				b.setOptionalText(36, dependency.LabelSelector)
			})
		}
		return err
	})
}
