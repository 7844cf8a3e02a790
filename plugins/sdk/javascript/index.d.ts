/** Write Bulkhead policy plugins in JavaScript and TypeScript. */

/** JSON Pointer (RFC 6901) such as `/status/readyReplicas`; the empty one is the whole document. */
export type Pointer = string;
export type Scalar = null | boolean | number | string;
export type Json = Scalar | Json[] | { [key: string]: Json };

/** Reason for a verdict. */
export interface Reason {
  /** One CamelCase word of at most 64 characters, for example `ChangeFreeze`. */
  code: string;
  /** Text for people, at most 1024 characters. */
  message: string;
}

export type Health = 'Healthy' | 'Unhealthy' | 'Unknown';
export type ConditionStatus = 'True' | 'False' | 'Unknown';
export type TaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';

export interface HealthVerdict {
  health: Health;
  reason: Reason;
}
export type Abstain = { verdict: 'abstain' };
export type FilterVerdict = { verdict: 'fit' } | { verdict: 'unfit'; reason: Reason } | Abstain;
export type EvictionVerdict =
  | { verdict: 'release'; reason: Reason }
  | { verdict: 'hold'; reason: Reason; recheckAfterSeconds?: number }
  | Abstain;
export type TaintChange =
  | { add: { key: string; value: string; effect: TaintEffect }; reason: Reason }
  | { remove: { key: string; effect: TaintEffect }; reason: Reason };
export type Edit = { set: { pointer: Pointer; value: Json } } | { remove: Pointer };

/** Resource requirements of one replica. */
export interface Requirements {
  /** Kubernetes quantities by resource name, for example `{ cpu: '100m' }`. */
  requests?: { [resource: string]: string };
  /** `hardNodeAffinity`, `nodeSelector` and `tolerations`. */
  nodeClaim?: Json;
  namespace?: string;
  priorityClassName?: string;
}
export interface Replicas {
  /** Desired replicas, 0 or more. */
  count: number;
  requirements?: Requirements;
}
/** One of several pod templates of an object. */
export interface Component {
  name: string;
  replicas: number;
  requirements?: Requirements;
}
/** An object that another one requires, by `name` or by `labelSelector`. */
export interface Dependency {
  apiVersion: string;
  kind: string;
  namespace?: string;
  name?: string;
  labelSelector?: Json;
}

/** The object works as specified. */
export function healthy(code: string, message?: string): HealthVerdict;
/** The object does not work as specified. */
export function unhealthy(code: string, message?: string): HealthVerdict;
/** The health cannot be determined; this never causes an eviction. */
export function unknown(code: string, message?: string): HealthVerdict;
/** This plugin accepts the cluster. */
export function fit(): FilterVerdict;
/** The cluster cannot run the binding. */
export function unfit(code: string, message?: string): FilterVerdict;
/** This plugin agrees to the removal of the old copy. */
export function release(code: string, message?: string): EvictionVerdict;
/** The old copy must stay. Without `recheckAfterSeconds` the host's default applies. */
export function hold(code: string, message?: string, recheckAfterSeconds?: number): EvictionVerdict;
/** No opinion, of a filter or an eviction check. */
export function abstain(): Abstain;
/** Adds a taint unless the cluster has one with the same key and effect. */
export function addTaint(key: string, effect: TaintEffect, code: string, message?: string, value?: string): TaintChange;
/** Removes the taint with the same key and effect. */
export function removeTaint(key: string, effect: TaintEffect, code: string, message?: string): TaintChange;
/** Writes a value; missing maps are created, `-` appends to a list. */
export function set(pointer: Pointer, value: Json): Edit;
/** Removes the value at a pointer, if there is one. */
export function remove(pointer: Pointer): Edit;

/** Thrown by a function that leaves the answer to the next policy. */
export class Unsupported extends Error {
  constructor();
}
/** Thrown by `configure`; the message describes a valid configuration. */
export class InvalidConfig extends Error {
  constructor(message: string);
}

/**
 * A Kubernetes object, or a part of one. It stays with the host; methods copy only the values that they return.
 * Inputs are valid until the function returns. Integers beyond 2^53 lose their last digits.
 */
export interface KubeObject {
  /** Returns the kind of the value at a pointer, and copies nothing; undefined if it is absent. */
  kind(pointer: Pointer): 'null' | 'boolean' | 'integer' | 'number' | 'text' | 'list' | 'map' | undefined;
  /** Returns the value at a pointer; undefined if it is absent. Lists and maps are copied as a whole. */
  get(pointer: Pointer): Json | undefined;
  /** Returns the scalars at several pointers with one call; undefined for others and for absent ones. */
  many(pointers: Pointer[]): (Scalar | undefined)[];
  /** Returns the scalar at `pointer` within each element of the list at `inList`. */
  each(inList: Pointer, pointer: Pointer): (Scalar | undefined)[];
  /** Returns the string at a pointer; undefined if it is absent or not a string. */
  text(pointer: Pointer): string | undefined;
  /** Returns the integer at a pointer; undefined if it is absent or not a 64-bit integer. */
  integer(pointer: Pointer): number | undefined;
  /** Returns the number at a pointer; undefined if it is absent or not a number. */
  number(pointer: Pointer): number | undefined;
  /** Returns the boolean at a pointer; undefined if it is absent or not a boolean. */
  boolean(pointer: Pointer): boolean | undefined;
  /** Returns the Kubernetes quantity at a pointer in thousandths, rounded up; undefined if it is absent. */
  quantityMilli(pointer: Pointer): number | undefined;
  /** Returns the size of the list or map at a pointer; undefined if it is neither. */
  length(pointer: Pointer): number | undefined;
  /** Returns the keys of the map at a pointer, in order; empty if it is not a map. */
  keys(pointer: Pointer): string[];
}

/** Reports of the member clusters about a workload, as columns in order of cluster name. */
export interface Observations {
  readonly length: number;
  clusters(): string[];
  /** Returns true for each cluster in which the object was applied. */
  applied(): boolean[];
  /** Returns the health in each cluster; undefined if it has not been determined yet. */
  health(): (Health | undefined)[];
  /** Returns the number at a pointer of each status, such as `/availableReplicas`. */
  number(pointer: Pointer): (number | undefined)[];
  text(pointer: Pointer): (string | undefined)[];
  /** Returns one status; undefined if the index is out of range or the cluster reported none. */
  status(index: number): KubeObject | undefined;
}

/** A workload and the clusters that it runs on. */
export interface Binding {
  /** Undefined for a `ClusterResourceBinding`. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly workload: { apiVersion: string; kind: string; name: string };
  /** Desired replicas over all clusters; 0 for a workload without replicas. */
  readonly replicas: number;
  /** Clusters that the workload is scheduled to. */
  readonly targets: { cluster: string; replicas: number }[];
  /** Clusters that the workload is being evicted from. */
  readonly evictingFrom: string[];
  readonly observed: Observations;
  /** The whole binding: namespace, name, labels, annotations, spec and status. */
  readonly document: KubeObject;
}

/** An old copy of a workload that is to be removed from a cluster. */
export interface EvictionTask {
  readonly fromCluster: string;
  /** Reason of the eviction in one word, such as `TaintUntolerated`. */
  readonly reason: string;
  readonly producer: string;
  /** Start of the grace period in seconds since the Unix epoch; undefined if it has not started. */
  readonly sinceSeconds: number | undefined;
  /** Undefined for the host's default. */
  readonly gracePeriodSeconds: number | undefined;
  /** Replicas of the old copy; undefined for a workload without replicas. */
  readonly replicas: number | undefined;
  readonly document: KubeObject;
}

export interface Taint {
  key: string;
  value: string;
  effect: TaintEffect;
  /** Seconds since the Unix epoch. */
  timeAddedSeconds: number | undefined;
}
export interface Condition {
  name: string;
  status: ConditionStatus;
  reason: string;
  message: string;
  /** Seconds since the Unix epoch. */
  lastTransitionSeconds: number | undefined;
}

/** A member cluster. */
export interface Cluster {
  readonly name: string;
  label(key: string): string | undefined;
  /** Empty if not set. */
  readonly provider: string;
  /** Empty if not set. */
  readonly region: string;
  readonly zones: string[];
  readonly taints: Taint[];
  readonly conditions: Condition[];
  condition(name: string): Condition | undefined;
  /** Returns true if the cluster's API server serves a kind of object. */
  serves(apiVersion: string, kind: string): boolean;
  /** The whole cluster: name, labels, generation, spec and status. */
  readonly document: KubeObject;
}

/** Candidate clusters as columns, in order of name. One call covers all of them. */
export interface Clusters {
  readonly length: number;
  names(): string[];
  /** Returns true for each cluster whose `Ready` condition is `True`. */
  ready(): boolean[];
  /** Returns true for each cluster that the binding is already scheduled to. */
  current(): boolean[];
  /** Returns the replicas of the binding on each cluster. */
  replicas(): number[];
  label(key: string): (string | undefined)[];
  /** Returns the region of each cluster; empty if not set. */
  regions(): string[];
  providers(): string[];
  /** Returns the allocatable amount of a resource in cores, bytes or pieces; undefined if it is not reported. */
  allocatable(resource: string): (number | undefined)[];
  /** Returns the allocatable amount without the requests of pods; undefined if it is not reported. */
  free(resource: string): (number | undefined)[];
  text(pointer: Pointer): (string | undefined)[];
  number(pointer: Pointer): (number | undefined)[];
  get(index: number): Cluster | undefined;
}

/** Context of a call: its time, its configuration and the log. */
export interface Call<Config> {
  /** Configuration, or the value that `configure` made from it. */
  readonly config: Config;
  /** Time of the call; constant during a call. */
  readonly now: Date;
  /** Seed for pseudo-random numbers. The same question has the same seed. */
  readonly seed: bigint;
  /** Name that the operator gave the plugin. */
  readonly pluginName: string;
  /** Writes a line of at most 512 characters for the operator. */
  log(level: 'debug' | 'info' | 'warn', message: string): void;
}

/** A plugin: its description, and a function for each kind of call that it answers. */
export interface Definition<Config = Json> {
  name: string;
  /** 1 to 64 characters. */
  version: string;
  description?: string;
  /** Kinds that `health` and the interpreter operations handle; every kind if absent. */
  kinds?: { apiVersion: string; kind: string }[];
  /** Keys of the taints that `clusterTaint` may add and remove. */
  taintKeys?: string[];
  /** JSON Schema (draft 2020-12) whose `examples` are valid configurations. Without it there is no configuration. */
  configSchema?: { [key: string]: Json };
  /** Allows the host to answer several calls in one instance. Set it only if no call leaves state behind. */
  reusable?: boolean;
  /** Checks the configuration and returns a value for `call.config`. It must be cheap. */
  configure?(config: Json): Config;

  /** Returns the health of an object as a member cluster reports it. */
  health?(observed: KubeObject, call: Call<Config>): HealthVerdict;
  /** Returns at most 64 changes of one cluster's taints. */
  clusterTaint?(cluster: Cluster, call: Call<Config>): TaintChange[];
  /** Returns one verdict per candidate, in their order. */
  filter?(binding: Binding, candidates: Clusters, call: Call<Config>): FilterVerdict[];
  /** Returns one score from 0 to 100 per cluster, in their order. */
  score?(binding: Binding, feasible: Clusters, call: Call<Config>): number[];
  /** Returns a verdict on one graceful eviction task. */
  evictionCheck?(binding: Binding, task: EvictionTask, call: Call<Config>): EvictionVerdict;

  /** `InterpretReplica`. */
  replicas?(template: KubeObject, call: Call<Config>): Replicas;
  /** `InterpretComponent`. */
  components?(template: KubeObject, call: Call<Config>): Component[];
  /** `ReviseReplica`: returns the edits that give a template the requested number of replicas. */
  reviseReplicas?(template: KubeObject, replicas: number, call: Call<Config>): Edit[];
  /** `Retain`: returns the edits of the desired object that preserve the fields owned by the member cluster. */
  retain?(desired: KubeObject, observed: KubeObject, call: Call<Config>): Edit[];
  /** `InterpretStatus`: returns the status to collect; undefined if there is nothing to collect. */
  reflectStatus?(observed: KubeObject, call: Call<Config>): Json | undefined;
  /** `AggregateStatus`: returns the edits that write the aggregated reports to a template. */
  aggregateStatus?(template: KubeObject, reports: Observations, call: Call<Config>): Edit[];
  /** `InterpretDependency`. */
  dependencies?(template: KubeObject, call: Call<Config>): Dependency[];
}

/** Checks and returns a definition. The module of a plugin exports it as its default. */
export function definePlugin<Config = Json>(definition: Definition<Config>): Definition<Config>;
