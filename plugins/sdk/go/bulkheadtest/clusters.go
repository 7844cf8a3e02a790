package bulkheadtest

import (
	"math"
	"sort"
	"time"

	"{{name}}/bulkhead"
)

// list returns the elements at a pointer as objects.
func (o object) list(pointer string) []object {
	elements, _ := o.at(pointer).([]any)
	found := make([]object, len(elements))
	for i, element := range elements {
		found[i] = object{element}
	}
	return found
}

func (o object) text(pointer string) string {
	text, _ := o.Text(pointer)
	return text
}

func (o object) number(pointer string) float64 {
	number, found := o.Number(pointer)
	if !found {
		return math.NaN()
	}
	return number
}

func (o object) optional(pointer string) bulkhead.Optional[string] {
	text, found := o.Text(pointer)
	return bulkhead.Optional[string]{Value: text, Found: found}
}

func column[T any](rows []object, read func(object) T) []T {
	found := make([]T, len(rows))
	for i, row := range rows {
		found[i] = read(row)
	}
	return found
}

func sorted(rows []object, name string) []object {
	sort.SliceStable(rows, func(a, b int) bool { return rows[a].text(name) < rows[b].text(name) })
	return rows
}

type observations struct{ rows []object }

// Observations returns reports from a JSON list.
func Observations(text string) bulkhead.Observations {
	return observations{sorted(object{decode(text)}.list(""), "/clusterName")}
}

func (o observations) Len() int { return len(o.rows) }

func (o observations) Clusters() []string {
	return column(o.rows, func(row object) string { return row.text("/clusterName") })
}

func (o observations) Applied() []bool {
	return column(o.rows, func(row object) bool { return row.at("/applied") == true })
}

func (o observations) Health() []bulkhead.Optional[bulkhead.HealthState] {
	states := map[string]bulkhead.HealthState{
		"Healthy": bulkhead.Healthy, "Unhealthy": bulkhead.Unhealthy, "Unknown": bulkhead.Unknown,
	}
	return column(o.rows, func(row object) bulkhead.Optional[bulkhead.HealthState] {
		state, found := states[row.text("/health")]
		return bulkhead.Optional[bulkhead.HealthState]{Value: state, Found: found}
	})
}

func (o observations) Number(pointer string) []float64 {
	return column(o.rows, func(row object) float64 { return object{row.at("/status")}.number(pointer) })
}

func (o observations) Text(pointer string) []bulkhead.Optional[string] {
	return column(o.rows, func(row object) bulkhead.Optional[string] {
		return object{row.at("/status")}.optional(pointer)
	})
}

func (o observations) Status(index int) bulkhead.Object {
	if index < 0 || index >= len(o.rows) || o.rows[index].at("/status") == nil {
		return nil
	}
	return object{o.rows[index].at("/status")}
}

type binding struct {
	object
	reports bulkhead.Observations
}

// Binding returns a binding from JSON with namespace, name and spec, and the reports of the member clusters.
func Binding(text, reports string) bulkhead.Binding {
	return binding{object{decode(text)}, Observations(reports)}
}

func (b binding) Namespace() string { return b.text("/namespace") }

func (b binding) Name() string { return b.text("/name") }

func (b binding) WorkloadKind() bulkhead.ObjectKind {
	return bulkhead.ObjectKind{APIVersion: b.text("/spec/resource/apiVersion"), Kind: b.text("/spec/resource/kind")}
}

func (b binding) WorkloadName() string { return b.text("/spec/resource/name") }

func (b binding) Replicas() uint32 {
	replicas, _ := b.Integer("/spec/replicas")
	return uint32(replicas)
}

func (b binding) Targets() []bulkhead.Target {
	return column(b.list("/spec/clusters"), func(row object) bulkhead.Target {
		replicas, _ := row.Integer("/replicas")
		return bulkhead.Target{Cluster: row.text("/name"), Replicas: uint32(replicas)}
	})
}

func (b binding) EvictingFrom() []string {
	return column(b.list("/spec/gracefulEvictionTasks"), func(row object) string { return row.text("/fromCluster") })
}

func (b binding) Observed() bulkhead.Observations { return b.reports }

func (b binding) Document() bulkhead.Object { return b.object }

type task struct{ object }

// EvictionTask returns a graceful eviction task from JSON.
func EvictionTask(text string) bulkhead.EvictionTask { return task{object{decode(text)}} }

func (t task) FromCluster() string { return t.text("/fromCluster") }

func (t task) Reason() string { return t.text("/reason") }

func (t task) Producer() string { return t.text("/producer") }

func (t task) Since() (time.Time, bool) {
	since := seconds(t.text("/creationTimestamp"))
	return since, !since.IsZero()
}

func (t task) GracePeriod() (time.Duration, bool) {
	period, found := t.Integer("/gracePeriodSeconds")
	return time.Duration(period) * time.Second, found
}

func (t task) Replicas() (uint32, bool) {
	replicas, found := t.Integer("/replicas")
	return uint32(replicas), found
}

func (t task) Document() bulkhead.Object { return t.object }

type cluster struct{ object }

// Cluster returns a cluster from JSON with name, labels, spec and status.
func Cluster(text string) bulkhead.Cluster { return cluster{object{decode(text)}} }

func (c cluster) Name() string { return c.text("/name") }

func (c cluster) Label(key string) (string, bool) {
	labels, _ := c.at("/labels").(map[string]any)
	value, found := labels[key].(string)
	return value, found
}

func (c cluster) Provider() string { return c.text("/spec/provider") }

func (c cluster) Region() string { return c.text("/spec/region") }

func (c cluster) Zones() []string {
	return column(c.list("/spec/zones"), func(row object) string { return row.text("") })
}

func (c cluster) Taints() []bulkhead.Taint {
	effects := map[string]bulkhead.TaintEffect{
		"NoSchedule": bulkhead.NoSchedule, "PreferNoSchedule": bulkhead.PreferNoSchedule, "NoExecute": bulkhead.NoExecute,
	}
	return column(c.list("/spec/taints"), func(row object) bulkhead.Taint {
		return bulkhead.Taint{
			Key: row.text("/key"), Value: row.text("/value"), Effect: effects[row.text("/effect")],
			TimeAdded: seconds(row.text("/timeAdded")),
		}
	})
}

func (c cluster) Conditions() []bulkhead.Condition {
	statuses := map[string]bulkhead.ConditionStatus{
		"True": bulkhead.True, "False": bulkhead.False, "Unknown": bulkhead.UnknownStatus,
	}
	return column(c.list("/status/conditions"), func(row object) bulkhead.Condition {
		return bulkhead.Condition{
			Name: row.text("/type"), Status: statuses[row.text("/status")], Reason: row.text("/reason"),
			Message: row.text("/message"), LastTransition: seconds(row.text("/lastTransitionTime")),
		}
	})
}

func (c cluster) Condition(name string) (bulkhead.Condition, bool) {
	for _, condition := range c.Conditions() {
		if condition.Name == name {
			return condition, true
		}
	}
	return bulkhead.Condition{}, false
}

func (c cluster) Serves(kind bulkhead.ObjectKind) bool {
	for _, group := range c.list("/status/apiEnablements") {
		for _, resource := range group.list("/resources") {
			if group.text("/groupVersion") == kind.APIVersion && resource.text("/kind") == kind.Kind {
				return true
			}
		}
	}
	return false
}

func (c cluster) Document() bulkhead.Object { return c.object }

type clusters struct {
	rows     []object
	replicas map[string]uint32
}

// Clusters returns candidates from a JSON list. Those that the binding, if there is one, is scheduled to are current.
func Clusters(text string, scheduled bulkhead.Binding) bulkhead.Clusters {
	found := clusters{sorted(object{decode(text)}.list(""), "/name"), map[string]uint32{}}
	if scheduled != nil {
		for _, target := range scheduled.Targets() {
			found.replicas[target.Cluster] = target.Replicas
		}
	}
	return found
}

func (c clusters) Len() int { return len(c.rows) }

func (c clusters) Names() []string {
	return column(c.rows, func(row object) string { return row.text("/name") })
}

func (c clusters) Ready() []bool {
	return column(c.rows, func(row object) bool {
		ready, found := cluster{row}.Condition("Ready")
		return found && ready.Status == bulkhead.True
	})
}

func (c clusters) Current() []bool {
	return column(c.rows, func(row object) bool { _, current := c.replicas[row.text("/name")]; return current })
}

func (c clusters) Replicas() []uint32 {
	return column(c.rows, func(row object) uint32 { return c.replicas[row.text("/name")] })
}

func (c clusters) Label(key string) []bulkhead.Optional[string] {
	return column(c.rows, func(row object) bulkhead.Optional[string] {
		value, found := cluster{row}.Label(key)
		return bulkhead.Optional[string]{Value: value, Found: found}
	})
}

func (c clusters) Regions() []string {
	return column(c.rows, func(row object) string { return row.text("/spec/region") })
}

func (c clusters) Providers() []string {
	return column(c.rows, func(row object) string { return row.text("/spec/provider") })
}

func amount(row object, part, resource string) (float64, bool) {
	resources, _ := row.at("/status/resourceSummary/" + part).(map[string]any)
	thousandths := quantity(resources[resource])
	if thousandths == nil {
		return 0, false
	}
	units, _ := thousandths.Float64()
	return units / 1000, true
}

func (c clusters) Allocatable(resource string) []float64 {
	return column(c.rows, func(row object) float64 {
		all, found := amount(row, "allocatable", resource)
		if !found {
			return math.NaN()
		}
		return all
	})
}

func (c clusters) Free(resource string) []float64 {
	return column(c.rows, func(row object) float64 {
		all, found := amount(row, "allocatable", resource)
		if !found {
			return math.NaN()
		}
		allocated, _ := amount(row, "allocated", resource)
		allocating, _ := amount(row, "allocating", resource)
		return max(all-allocated-allocating, 0)
	})
}

func (c clusters) Text(pointer string) []bulkhead.Optional[string] {
	return column(c.rows, func(row object) bulkhead.Optional[string] { return row.optional(pointer) })
}

func (c clusters) Number(pointer string) []float64 {
	return column(c.rows, func(row object) float64 { return row.number(pointer) })
}

func (c clusters) Get(index int) bulkhead.Cluster {
	if index < 0 || index >= len(c.rows) {
		return nil
	}
	return cluster{c.rows[index]}
}
