package bulkhead

import "time"

// Inputs stay with the host; methods copy only the values that they return. They are valid until the function returns.
// Pointers are JSON Pointers (RFC 6901) such as /status/readyReplicas; the empty one is the whole document.

// Object is a Kubernetes object, or a part of one.
type Object interface {
	// Kind returns "null", "boolean", "integer", "number", "text", "list" or "map"; empty if the value is absent. It
	// copies nothing.
	Kind(pointer string) string
	// Get returns the value at a pointer: nil, bool, int64, float64, string, []any or map[string]any.
	Get(pointer string) (value any, found bool)
	// Many returns the scalars at several pointers with one call; nil for others and for absent ones.
	Many(pointers ...string) []any
	// Each returns the scalar at pointer within each element of the list at list.
	Each(list, pointer string) []any
	// Text returns the string at a pointer.
	Text(pointer string) (string, bool)
	// Integer returns the 64-bit integer at a pointer.
	Integer(pointer string) (int64, bool)
	// Number returns the number at a pointer.
	Number(pointer string) (float64, bool)
	// Boolean returns the boolean at a pointer.
	Boolean(pointer string) (value, found bool)
	// QuantityMilli returns the Kubernetes quantity at a pointer in thousandths, rounded up.
	QuantityMilli(pointer string) (int64, bool)
	// Length returns the size of the list or map at a pointer.
	Length(pointer string) (int, bool)
	// Keys returns the keys of the map at a pointer, in order.
	Keys(pointer string) []string
	// JSON returns the value at a pointer as JSON.
	JSON(pointer string) (string, bool)
}

// Optional is a value of a column that may be absent.
type Optional[T any] struct {
	Value T
	Found bool
}

// Observations are the reports of the member clusters, as columns in order of cluster name.
type Observations interface {
	Len() int
	Clusters() []string
	// Applied returns true for each cluster in which the object was applied.
	Applied() []bool
	// Health returns the health in each cluster, if it has been determined.
	Health() []Optional[HealthState]
	// Number returns the number at a pointer of each status; NaN if it is absent.
	Number(pointer string) []float64
	Text(pointer string) []Optional[string]
	// Status returns one status; nil if the index is out of range or the cluster reported none.
	Status(index int) Object
}

// Target is a cluster that a workload is scheduled to.
type Target struct {
	Cluster  string
	Replicas uint32
}

// Binding is a workload and the clusters that it runs on.
type Binding interface {
	// Namespace is empty for a ClusterResourceBinding.
	Namespace() string
	Name() string
	WorkloadKind() ObjectKind
	WorkloadName() string
	// Replicas returns the desired replicas over all clusters; 0 for a workload without replicas.
	Replicas() uint32
	Targets() []Target
	// EvictingFrom returns the clusters that the workload is being evicted from.
	EvictingFrom() []string
	Observed() Observations
	// Document returns the whole binding.
	Document() Object
}

// EvictionTask is an old copy of a workload that is to be removed from a cluster.
type EvictionTask interface {
	FromCluster() string
	// Reason returns the reason of the eviction in one word, such as TaintUntolerated.
	Reason() string
	Producer() string
	// Since returns the start of the grace period, if it has started.
	Since() (time.Time, bool)
	// GracePeriod returns the grace period of this task; false for the host's default.
	GracePeriod() (time.Duration, bool)
	// Replicas returns the replicas of the old copy; false for a workload without replicas.
	Replicas() (uint32, bool)
	Document() Object
}

// Taint of a cluster.
type Taint struct {
	Key, Value string
	Effect     TaintEffect
	// TimeAdded is zero if it is not known.
	TimeAdded time.Time
}

// Condition of a cluster.
type Condition struct {
	Name            string
	Status          ConditionStatus
	Reason, Message string
	// LastTransition is zero if it is not known.
	LastTransition time.Time
}

// Cluster is a member cluster.
type Cluster interface {
	Name() string
	Label(key string) (string, bool)
	Provider() string
	Region() string
	Zones() []string
	Taints() []Taint
	Conditions() []Condition
	Condition(name string) (Condition, bool)
	// Serves returns true if the cluster's API server serves a kind of object.
	Serves(kind ObjectKind) bool
	Document() Object
}

// Clusters are candidate clusters as columns, in order of name. One call covers all of them.
type Clusters interface {
	Len() int
	Names() []string
	// Ready returns true for each cluster whose Ready condition is True.
	Ready() []bool
	// Current returns true for each cluster that the binding is already scheduled to.
	Current() []bool
	Replicas() []uint32
	Label(key string) []Optional[string]
	Regions() []string
	Providers() []string
	// Allocatable returns the allocatable amount of a resource in cores, bytes or pieces; NaN if it is not reported.
	Allocatable(resource string) []float64
	// Free returns the allocatable amount without the requests of pods.
	Free(resource string) []float64
	Text(pointer string) []Optional[string]
	Number(pointer string) []float64
	// Get returns one cluster; nil if the index is out of range.
	Get(index int) Cluster
}

// Context is the source of time, seed, name and log lines. The host and the tests each install one.
type Context struct {
	Now        func() time.Time
	Seed       func() uint64
	PluginName func() string
	Log        func(level, message string)
}

// Current context; bulkheadtest replaces it.
var Current = Context{
	Now:        func() time.Time { panic("there is no call under way; tests use bulkheadtest.Call") },
	Seed:       func() uint64 { return 0 },
	PluginName: func() string { return registered.Name },
	Log:        func(string, string) {},
}

// Now returns the time of the call in UTC. It is constant during a call.
func Now() time.Time { return Current.Now() }

// Seed returns a seed for pseudo-random numbers. The same question has the same seed.
func Seed() uint64 { return Current.Seed() }

// PluginName returns the name that the operator gave the plugin.
func PluginName() string { return Current.PluginName() }

// Log writes a line of at most 512 characters for the operator. Levels are debug, info and warn.
func Log(level, message string) { Current.Log(level, message) }

// Registered returns the plugin, for tests.
func Registered() Plugin { return *registered }
