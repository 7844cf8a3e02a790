package bulkhead

import "unsafe"

//go:wasmimport bulkhead:policy/cluster@0.1.0 [resource-drop]cluster
func clusterDrop(self uint32)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.name
func clusterName(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.label
func clusterLabel(self uint32, key string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.provider
func clusterProvider(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.region
func clusterRegion(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.zones
func clusterZones(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.taints
func clusterTaints(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.conditions
func clusterConditions(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.condition
func clusterCondition(self uint32, name string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.serves
func clusterServes(self uint32, apiVersion, kind string) uint32

//go:wasmimport bulkhead:policy/cluster@0.1.0 [method]cluster.document
func clusterDocument(self uint32) uint32

type hostCluster uint32

func clusterOf(handle uint32) Cluster { return hostCluster(hold(handle, clusterDrop)) }

func (c hostCluster) Name() string {
	clusterName(uint32(c), results().at)
	return results().text(0)
}

func (c hostCluster) Label(key string) (string, bool) {
	clusterLabel(uint32(c), key, results().at)
	if !results().some(0) {
		return "", false
	}
	return results().text(4), true
}

func (c hostCluster) Provider() string {
	clusterProvider(uint32(c), results().at)
	return results().text(0)
}

func (c hostCluster) Region() string {
	clusterRegion(uint32(c), results().at)
	return results().text(0)
}

func (c hostCluster) Zones() []string {
	clusterZones(uint32(c), results().at)
	return texts(results())
}

func (c hostCluster) Taints() []Taint {
	clusterTaints(uint32(c), results().at)
	return each(results(), 0, 40, func(b block) Taint {
		return Taint{Key: b.text(0), Value: b.text(8), Effect: TaintEffect(b.u8(16)), TimeAdded: b.second(24)}
	})
}

func condition(b block) Condition {
	return Condition{
		Name: b.text(0), Status: ConditionStatus(b.u8(8)), Reason: b.text(12), Message: b.text(20),
		LastTransition: b.second(32),
	}
}

func (c hostCluster) Conditions() []Condition {
	clusterConditions(uint32(c), results().at)
	return each(results(), 0, 48, condition)
}

func (c hostCluster) Condition(name string) (Condition, bool) {
	clusterCondition(uint32(c), name, results().at)
	if !results().some(0) {
		return Condition{}, false
	}
	return condition(results().part(8)), true
}

func (c hostCluster) Serves(kind ObjectKind) bool {
	return clusterServes(uint32(c), kind.APIVersion, kind.Kind) == 1
}

func (c hostCluster) Document() Object { return objectOf(clusterDocument(uint32(c))) }
