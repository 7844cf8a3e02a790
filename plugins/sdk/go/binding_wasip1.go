package bulkhead

import (
	"time"
	"unsafe"
)

//go:wasmimport bulkhead:policy/binding@0.1.0 [resource-drop]binding
func bindingDrop(self uint32)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.namespace
func bindingNamespace(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.name
func bindingName(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.workload-kind
func bindingWorkloadKind(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.workload-name
func bindingWorkloadName(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.replicas
func bindingReplicas(self uint32) uint32

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.targets
func bindingTargets(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.evicting-from
func bindingEvictingFrom(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.observed
func bindingObserved(self uint32) uint32

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]binding.document
func bindingDocument(self uint32) uint32

type hostBinding uint32

func bindingOf(handle uint32) Binding { return hostBinding(hold(handle, bindingDrop)) }

func (b hostBinding) Namespace() string {
	bindingNamespace(uint32(b), results().at)
	if !results().some(0) {
		return ""
	}
	return results().text(4)
}

func (b hostBinding) Name() string {
	bindingName(uint32(b), results().at)
	return results().text(0)
}

func (b hostBinding) WorkloadKind() ObjectKind {
	bindingWorkloadKind(uint32(b), results().at)
	return ObjectKind{APIVersion: results().text(0), Kind: results().text(8)}
}

func (b hostBinding) WorkloadName() string {
	bindingWorkloadName(uint32(b), results().at)
	return results().text(0)
}

func (b hostBinding) Replicas() uint32 { return bindingReplicas(uint32(b)) }

func (b hostBinding) Targets() []Target {
	bindingTargets(uint32(b), results().at)
	return each(results(), 0, 12, func(b block) Target { return Target{Cluster: b.text(0), Replicas: b.u32(8)} })
}

func (b hostBinding) EvictingFrom() []string {
	bindingEvictingFrom(uint32(b), results().at)
	return texts(results())
}

func (b hostBinding) Observed() Observations { return observationsOf(bindingObserved(uint32(b))) }

func (b hostBinding) Document() Object { return objectOf(bindingDocument(uint32(b))) }

//go:wasmimport bulkhead:policy/binding@0.1.0 [resource-drop]eviction-task
func taskDrop(self uint32)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.from-cluster
func taskFromCluster(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.reason
func taskReason(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.producer
func taskProducer(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.since-s
func taskSinceS(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.grace-period-s
func taskGracePeriodS(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.replicas
func taskReplicas(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/binding@0.1.0 [method]eviction-task.document
func taskDocument(self uint32) uint32

type hostTask uint32

func taskOf(handle uint32) EvictionTask { return hostTask(hold(handle, taskDrop)) }

func (t hostTask) FromCluster() string {
	taskFromCluster(uint32(t), results().at)
	return results().text(0)
}

func (t hostTask) Reason() string {
	taskReason(uint32(t), results().at)
	return results().text(0)
}

func (t hostTask) Producer() string {
	taskProducer(uint32(t), results().at)
	return results().text(0)
}

func (t hostTask) Since() (time.Time, bool) {
	taskSinceS(uint32(t), results().at)
	return results().second(0), results().some(0)
}

func (t hostTask) GracePeriod() (time.Duration, bool) {
	taskGracePeriodS(uint32(t), results().at)
	if !results().some(0) {
		return 0, false
	}
	return time.Duration(results().u32(4)) * time.Second, true
}

func (t hostTask) Replicas() (uint32, bool) {
	taskReplicas(uint32(t), results().at)
	if !results().some(0) {
		return 0, false
	}
	return results().u32(4), true
}

func (t hostTask) Document() Object { return objectOf(taskDocument(uint32(t))) }
