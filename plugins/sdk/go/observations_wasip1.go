package bulkhead

import "unsafe"

//go:wasmimport bulkhead:policy/observations@0.1.0 [resource-drop]observations
func observationsDrop(self uint32)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.len
func observationsLen(self uint32) uint32

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.clusters
func observationsClusters(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.applied
func observationsApplied(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.health
func observationsHealth(self uint32, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.number
func observationsNumber(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.text
func observationsText(self uint32, pointer string, results unsafe.Pointer)

//go:wasmimport bulkhead:policy/observations@0.1.0 [method]observations.status
func observationsStatus(self, index uint32, results unsafe.Pointer)

type hostObservations uint32

func observationsOf(handle uint32) Observations {
	return hostObservations(hold(handle, observationsDrop))
}

func (o hostObservations) Len() int { return int(observationsLen(uint32(o))) }

func (o hostObservations) Clusters() []string {
	observationsClusters(uint32(o), results().at)
	return texts(results())
}

func (o hostObservations) Applied() []bool {
	observationsApplied(uint32(o), results().at)
	return flags(results())
}

func (o hostObservations) Health() []Optional[HealthState] {
	observationsHealth(uint32(o), results().at)
	return each(results(), 0, 2, func(b block) Optional[HealthState] {
		if !b.some(0) {
			return Optional[HealthState]{}
		}
		return Optional[HealthState]{Value: HealthState(b.u8(1)), Found: true}
	})
}

func (o hostObservations) Number(pointer string) []float64 {
	observationsNumber(uint32(o), pointer, results().at)
	return numbers(results())
}

func (o hostObservations) Text(pointer string) []Optional[string] {
	observationsText(uint32(o), pointer, results().at)
	return optionalTexts(results())
}

func (o hostObservations) Status(index int) Object {
	observationsStatus(uint32(o), uint32(index), results().at)
	if !results().some(0) {
		return nil
	}
	return objectOf(results().u32(4))
}
