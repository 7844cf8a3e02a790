/** A host stub: inputs from plain data in the shape of the cases of `bulkhead plugin test`. Needs no WebAssembly. */

import type { Binding, Call, Cluster, Clusters, Definition, EvictionTask, Json, KubeObject, Observations } from './index.js';

/** Data in the shape of a case. */
export type Data = { [field: string]: unknown };

/** Returns an object with this content. */
export function objectOf(data: unknown): KubeObject;
/** Returns a cluster from its name, labels, spec and status. */
export function clusterOf(data: Data): Cluster;
/** Returns candidate clusters; those that `binding` is scheduled to are current. */
export function clustersOf(clusters: Data[], binding?: Binding): Clusters;
/** Returns a binding from its namespace, name and spec, with the reports of the member clusters. */
export function bindingOf(data: Data, reports?: Data[]): Binding;
/** Returns the reports of the member clusters. */
export function observationsOf(reports: Data[]): Observations;
/** Returns a graceful eviction task. */
export function taskOf(data: Data): EvictionTask;
/** Returns the context of a call, with the configuration as `configure` makes it, and the `lines` of the log. */
export function callOf<Config>(
  definition: Definition<Config>,
  options?: { now?: string; config?: Json; seed?: bigint },
): Call<Config> & { lines: { level: string; message: string }[] };
