package bulkhead

import "unsafe"

//go:wasmimport bulkhead:policy/clusters@0.1.0 [resource-drop]clusters
func clustersDrop(self uint32)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.len
func clustersLen(self uint32) uint32

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.names
func clustersNames(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.ready
func clustersReady(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.current
func clustersCurrent(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.replicas
func clustersReplicas(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.label
func clustersLabel(self uint32, key string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.regions
func clustersRegions(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.providers
func clustersProviders(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.allocatable
func clustersAllocatable(self uint32, resource string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.free
func clustersFree(self uint32, resource string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.text
func clustersText(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.number
func clustersNumber(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/clusters@0.1.0 [method]clusters.get
func clustersGet(self, index uint32, results unsafe.Pointer)

type hostClusters uint32

func clustersOf(handle uint32) Clusters { return hostClusters(hold(handle, clustersDrop)) }

func (c hostClusters) Len() int { return int(clustersLen(uint32(c))) }

func (c hostClusters) Names() []string {
	clustersNames(uint32(c), results().at)
	return texts(results())
}

func (c hostClusters) Ready() []bool {
	clustersReady(uint32(c), results().at)
	return flags(results())
}

func (c hostClusters) Current() []bool {
	clustersCurrent(uint32(c), results().at)
	return flags(results())
}

func (c hostClusters) Replicas() []uint32 {
	clustersReplicas(uint32(c), results().at)
	return each(results(), 0, 4, func(b block) uint32 { return b.u32(0) })
}

func (c hostClusters) Label(key string) []Optional[string] {
	clustersLabel(uint32(c), key, results().at)
	return optionalTexts(results())
}

func (c hostClusters) Regions() []string {
	clustersRegions(uint32(c), results().at)
	return texts(results())
}

func (c hostClusters) Providers() []string {
	clustersProviders(uint32(c), results().at)
	return texts(results())
}

func (c hostClusters) Allocatable(resource string) []float64 {
	clustersAllocatable(uint32(c), resource, results().at)
	return numbers(results())
}

func (c hostClusters) Free(resource string) []float64 {
	clustersFree(uint32(c), resource, results().at)
	return numbers(results())
}

func (c hostClusters) Text(pointer string) []Optional[string] {
	clustersText(uint32(c), pointer, results().at)
	return optionalTexts(results())
}

func (c hostClusters) Number(pointer string) []float64 {
	clustersNumber(uint32(c), pointer, results().at)
	return numbers(results())
}

func (c hostClusters) Get(index int) Cluster {
	clustersGet(uint32(c), uint32(index), results().at)
	if !results().some(0) {
		return nil
	}
	return clusterOf(results().u32(4))
}
