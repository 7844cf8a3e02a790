// Package bulkhead is the SDK for policy plugins in Go.
//
// A plugin is a main package that registers one [Plugin]:
//
//	func init() {
//		bulkhead.Register(bulkhead.Plugin{
//			Name: "game-health", Version: "0.1.0",
//			Kinds:  []bulkhead.ObjectKind{{APIVersion: "example.io/v1", Kind: "Game"}},
//			Health: interpret,
//		})
//	}
//
//	func main() {}
//
// An error is a fault of the plugin; the host never treats it as a verdict. [Unsupported] leaves the answer to the
// next policy.
package bulkhead

import (
	"errors"
	"fmt"
	"time"
)

// Unsupported is returned by a function that leaves the answer to the next policy.
var Unsupported = errors.New("the plugin does not handle this")

// InvalidConfig is returned by [Plugin.Configure]. Its text describes a valid configuration.
type InvalidConfig string

func (text InvalidConfig) Error() string { return string(text) }

// Plugin describes a plugin and has a function for each kind of call that it answers.
type Plugin struct {
	Name string
	// Version has 1 to 64 characters.
	Version     string
	Description string
	// Kinds that Health and the interpreter operations handle; every kind if empty.
	Kinds []ObjectKind
	// TaintKeys are the keys of the taints that ClusterTaint may add and remove.
	TaintKeys []string
	// ConfigSchema is a JSON Schema (draft 2020-12) whose examples are valid configurations.
	ConfigSchema string
	// Reusable allows the host to answer several calls in one instance. Set it only if no call leaves state behind.
	Reusable bool

	// Configure checks the configuration, which is JSON, and keeps it. It must be cheap.
	Configure func(config []byte) error

	// Health returns the health of an object as a member cluster reports it.
	Health func(observed Object) (HealthVerdict, error)
	// ClusterTaint returns at most 64 changes of one cluster's taints.
	ClusterTaint func(cluster Cluster) ([]TaintChange, error)
	// Filter returns one verdict per candidate, in their order.
	Filter func(binding Binding, candidates Clusters) ([]FilterVerdict, error)
	// Score returns one score from 0 to 100 per cluster, in their order.
	Score func(binding Binding, feasible Clusters) ([]uint32, error)
	// EvictionCheck returns a verdict on one graceful eviction task.
	EvictionCheck func(binding Binding, task EvictionTask) (EvictionVerdict, error)

	// Replicas is InterpretReplica.
	Replicas func(template Object) (Replicas, error)
	// Components is InterpretComponent.
	Components func(template Object) ([]Component, error)
	// ReviseReplicas is ReviseReplica: the edits that give a template the requested number of replicas.
	ReviseReplicas func(template Object, replicas int32) ([]Edit, error)
	// Retain returns the edits of the desired object that preserve the fields owned by the member cluster.
	Retain func(desired, observed Object) ([]Edit, error)
	// ReflectStatus is InterpretStatus: the status to collect as JSON; nil if there is nothing to collect.
	ReflectStatus func(observed Object) ([]byte, error)
	// AggregateStatus returns the edits that write the aggregated reports to a template.
	AggregateStatus func(template Object, reports Observations) ([]Edit, error)
	// Dependencies is InterpretDependency.
	Dependencies func(template Object) ([]Dependency, error)
}

var registered *Plugin

// Register declares the plugin. Called once, from an init function.
func Register(plugin Plugin) {
	if registered != nil {
		panic("bulkhead.Register is called twice")
	}
	if plugin.Name == "" || plugin.Version == "" {
		panic("bulkhead.Register: Name and Version must be set")
	}
	registered = &plugin
}

// Reason for a verdict.
type Reason struct {
	// Code is one CamelCase word of at most 64 characters, for example ChangeFreeze.
	Code string
	// Message is text for people, at most 1024 characters.
	Message string
}

// Because returns a reason with a formatted message.
func Because(code, format string, arguments ...any) Reason {
	return Reason{Code: code, Message: fmt.Sprintf(format, arguments...)}
}

// HealthState is the health of an object in a member cluster.
type HealthState uint8

const (
	// Healthy objects work as specified.
	Healthy HealthState = iota
	// Unhealthy objects do not work as specified.
	Unhealthy
	// Unknown health never causes an eviction.
	Unknown
)

func (state HealthState) String() string {
	return [...]string{"Healthy", "Unhealthy", "Unknown"}[state]
}

// HealthVerdict is a health and the reason for it.
type HealthVerdict struct {
	State  HealthState
	Reason Reason
}

// IsHealthy returns a verdict with a formatted message.
func IsHealthy(code, format string, arguments ...any) HealthVerdict {
	return HealthVerdict{State: Healthy, Reason: Because(code, format, arguments...)}
}

// IsUnhealthy returns a verdict with a formatted message.
func IsUnhealthy(code, format string, arguments ...any) HealthVerdict {
	return HealthVerdict{State: Unhealthy, Reason: Because(code, format, arguments...)}
}

// IsUnknown returns a verdict with a formatted message.
func IsUnknown(code, format string, arguments ...any) HealthVerdict {
	return HealthVerdict{State: Unknown, Reason: Because(code, format, arguments...)}
}

// FilterVerdict is a verdict on one candidate cluster; see [Fit], [Unfit] and [NoFilterOpinion].
type FilterVerdict struct {
	kind   uint8
	Reason Reason
}

// Fit accepts the cluster.
var Fit = FilterVerdict{kind: 0}

// NoFilterOpinion abstains.
var NoFilterOpinion = FilterVerdict{kind: 2}

// Unfit rejects the cluster.
func Unfit(reason Reason) FilterVerdict { return FilterVerdict{kind: 1, Reason: reason} }

// Fits returns true for [Fit].
func (verdict FilterVerdict) Fits() bool { return verdict.kind == 0 }

// EvictionVerdict is a verdict on one task; see [Release], [Hold] and [NoEvictionOpinion].
type EvictionVerdict struct {
	kind    uint8
	Reason  Reason
	recheck *uint32
}

// Release agrees to the removal of the old copy.
func Release(reason Reason) EvictionVerdict { return EvictionVerdict{kind: 0, Reason: reason} }

// Hold keeps the old copy.
func Hold(reason Reason) EvictionVerdict { return EvictionVerdict{kind: 1, Reason: reason} }

// HoldFor keeps the old copy, with a time until the next check.
func HoldFor(reason Reason, recheck time.Duration) EvictionVerdict {
	seconds := uint32(recheck / time.Second)
	return EvictionVerdict{kind: 1, Reason: reason, recheck: &seconds}
}

// NoEvictionOpinion abstains.
var NoEvictionOpinion = EvictionVerdict{kind: 2}

// Releases returns true for [Release].
func (verdict EvictionVerdict) Releases() bool { return verdict.kind == 0 }

// TaintEffect is the effect of a taint.
type TaintEffect uint8

const (
	NoSchedule TaintEffect = iota
	PreferNoSchedule
	NoExecute
)

// TaintChange is one change of a cluster's taints; see [AddTaint] and [RemoveTaint].
type TaintChange struct {
	removes bool
	Key     string
	Value   string
	Effect  TaintEffect
	Reason  Reason
}

// AddTaint adds a taint unless the cluster has one with the same key and effect.
func AddTaint(key string, effect TaintEffect, reason Reason) TaintChange {
	return TaintChange{Key: key, Effect: effect, Reason: reason}
}

// RemoveTaint removes the taint with the same key and effect.
func RemoveTaint(key string, effect TaintEffect, reason Reason) TaintChange {
	return TaintChange{removes: true, Key: key, Effect: effect, Reason: reason}
}

// Removes returns true for [RemoveTaint].
func (change TaintChange) Removes() bool { return change.removes }

// Requirements of one replica.
type Requirements struct {
	// Requests are Kubernetes quantities by resource name.
	Requests map[string]string
	// NodeClaim is JSON with hardNodeAffinity, nodeSelector and tolerations; empty for none.
	NodeClaim         string
	Namespace         string
	PriorityClassName string
}

// Replicas are the desired replicas, 0 or more, and the requirements of one.
type Replicas struct {
	Count        int32
	Requirements *Requirements
}

// Component is one of several pod templates of an object.
type Component struct {
	Name         string
	Replicas     int32
	Requirements *Requirements
}

// Dependency is an object that another one requires, by Name or by LabelSelector.
type Dependency struct {
	APIVersion string
	Kind       string
	Namespace  string
	Name       string
	// LabelSelector is JSON; empty for none.
	LabelSelector string
}

// Edit is one change of a document; see [Set] and [Remove].
type Edit struct {
	removes bool
	Pointer string
	// JSON is the value to write.
	JSON string
}

// Set writes a JSON value at a JSON Pointer; missing maps are created, "-" appends to a list.
func Set(pointer, json string) Edit { return Edit{Pointer: pointer, JSON: json} }

// Remove removes the value at a JSON Pointer, if there is one.
func Remove(pointer string) Edit { return Edit{removes: true, Pointer: pointer} }

// ConditionStatus is the status of a condition.
type ConditionStatus uint8

const (
	True ConditionStatus = iota
	False
	UnknownStatus
)

// ObjectKind is the API version and kind of an object.
type ObjectKind struct {
	APIVersion string
	Kind       string
}
