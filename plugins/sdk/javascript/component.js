// Connects a plugin to the component interface of the host. Only the build imports this module.

import { nowMs, pluginName, seed } from 'bulkhead:policy/context@0.1.0';
import { write } from 'bulkhead:policy/log@0.1.0';

import * as convert from './convert.js';

const DISPOSE = Symbol.dispose ?? Symbol.for('dispose');
const HEALTH = { healthy: 'Healthy', unhealthy: 'Unhealthy', unknown: 'Unknown' };
const STATUS = { true: 'True', false: 'False', unknown: 'Unknown' };
const EFFECT = {
  'no-schedule': 'NoSchedule',
  'prefer-no-schedule': 'PreferNoSchedule',
  'no-execute': 'NoExecute',
};

/** Handles that the host gave out during the call. All are released when it returns. */
let handles = [];
let config = null;

function owned(raw) {
  handles.push(raw);
  return raw;
}

const integer = (value) => (value === undefined || value === null ? undefined : Number(value));
const numbers = (values) => Array.from(values, (value) => (Number.isNaN(value) ? undefined : value));

function scalar(value) {
  switch (value?.tag) {
    case undefined:
    case 'array':
    case 'fields':
      return undefined;
    case 'null':
      return null;
    case 'integer':
      return Number(value.val);
    default:
      return value.val;
  }
}

class HostObject {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  kind(pointer) {
    const tag = this.#raw.get(pointer)?.tag;
    return { array: 'list', fields: 'map' }[tag] ?? tag;
  }
  get(pointer) {
    const value = this.#raw.get(pointer);
    if (value?.tag === 'array' || value?.tag === 'fields') return JSON.parse(this.#raw.json(pointer));
    return scalar(value);
  }
  many(pointers) {
    return this.#raw.getMany(pointers).map(scalar);
  }
  each(inList, pointer) {
    return this.#raw.getEach(inList, pointer).map(scalar);
  }
  text(pointer) {
    return this.#raw.getString(pointer);
  }
  integer(pointer) {
    return integer(this.#raw.getS64(pointer));
  }
  number(pointer) {
    return this.#raw.getF64(pointer);
  }
  boolean(pointer) {
    return this.#raw.getBool(pointer);
  }
  quantityMilli(pointer) {
    return integer(this.#raw.getQuantityMilli(pointer));
  }
  length(pointer) {
    return this.#raw.length(pointer);
  }
  keys(pointer) {
    return this.#raw.keys(pointer);
  }
}

class HostObservations {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  get length() {
    return this.#raw.len();
  }
  clusters() {
    return this.#raw.clusters();
  }
  applied() {
    return this.#raw.applied();
  }
  health() {
    return this.#raw.health().map((state) => HEALTH[state]);
  }
  number(pointer) {
    return numbers(this.#raw.number(pointer));
  }
  text(pointer) {
    return this.#raw.text(pointer);
  }
  status(index) {
    const found = this.#raw.status(index);
    return found === undefined ? undefined : new HostObject(owned(found));
  }
}

class HostBinding {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  get namespace() {
    return this.#raw.namespace();
  }
  get name() {
    return this.#raw.name();
  }
  get workload() {
    return { ...this.#raw.workloadKind(), name: this.#raw.workloadName() };
  }
  get replicas() {
    return this.#raw.replicas();
  }
  get targets() {
    return this.#raw.targets();
  }
  get evictingFrom() {
    return this.#raw.evictingFrom();
  }
  get observed() {
    return new HostObservations(owned(this.#raw.observed()));
  }
  get document() {
    return new HostObject(owned(this.#raw.document()));
  }
}

class HostEvictionTask {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  get fromCluster() {
    return this.#raw.fromCluster();
  }
  get reason() {
    return this.#raw.reason();
  }
  get producer() {
    return this.#raw.producer();
  }
  get sinceSeconds() {
    return integer(this.#raw.sinceS());
  }
  get gracePeriodSeconds() {
    return this.#raw.gracePeriodS();
  }
  get replicas() {
    return this.#raw.replicas();
  }
  get document() {
    return new HostObject(owned(this.#raw.document()));
  }
}

const taint = ({ key, value, effect, timeAddedS }) => ({
  key,
  value,
  effect: EFFECT[effect],
  timeAddedSeconds: integer(timeAddedS),
});
const condition = ({ name, status, reason, message, lastTransitionS }) => ({
  name,
  status: STATUS[status],
  reason,
  message,
  lastTransitionSeconds: integer(lastTransitionS),
});

class HostCluster {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  get name() {
    return this.#raw.name();
  }
  label(key) {
    return this.#raw.label(key);
  }
  get provider() {
    return this.#raw.provider();
  }
  get region() {
    return this.#raw.region();
  }
  get zones() {
    return this.#raw.zones();
  }
  get taints() {
    return this.#raw.taints().map(taint);
  }
  get conditions() {
    return this.#raw.conditions().map(condition);
  }
  condition(name) {
    const found = this.#raw.condition(name);
    return found === undefined ? undefined : condition(found);
  }
  serves(apiVersion, kind) {
    return this.#raw.serves(apiVersion, kind);
  }
  get document() {
    return new HostObject(owned(this.#raw.document()));
  }
}

class HostClusters {
  #raw;
  constructor(raw) {
    this.#raw = raw;
  }
  get length() {
    return this.#raw.len();
  }
  names() {
    return this.#raw.names();
  }
  ready() {
    return this.#raw.ready();
  }
  current() {
    return this.#raw.current();
  }
  replicas() {
    return Array.from(this.#raw.replicas());
  }
  label(key) {
    return this.#raw.label(key);
  }
  regions() {
    return this.#raw.regions();
  }
  providers() {
    return this.#raw.providers();
  }
  allocatable(resource) {
    return numbers(this.#raw.allocatable(resource));
  }
  free(resource) {
    return numbers(this.#raw.free(resource));
  }
  text(pointer) {
    return this.#raw.text(pointer);
  }
  number(pointer) {
    return numbers(this.#raw.number(pointer));
  }
  get(index) {
    const found = this.#raw.get(index);
    return found === undefined ? undefined : new HostCluster(owned(found));
  }
}

const call = {
  get config() {
    return config;
  },
  get now() {
    return new Date(Number(nowMs()));
  },
  get seed() {
    return seed();
  },
  get pluginName() {
    return pluginName();
  },
  log(level, message) {
    write(level, String(message));
  },
};

/** Turns an exception into an error of the contract. */
function error(thrown) {
  if (thrown?.name === 'Unsupported') return { tag: 'unsupported' };
  if (thrown?.name === 'InvalidConfig') return { tag: 'invalid-config', val: thrown.message };
  if (!(thrown instanceof Error)) return { tag: 'internal', val: `thrown: ${String(thrown)}` };
  const message = `${thrown.name}: ${thrown.message}`;
  for (const line of [message, ...String(thrown.stack ?? '').split('\n')]) {
    if (line.trim() !== '') write('warn', line);
  }
  return { tag: 'internal', val: message };
}

/** Runs one call: turns exceptions into errors of the contract, and releases the handles. */
function during(borrowed, run) {
  try {
    return run();
  } catch (thrown) {
    throw error(thrown);
  } finally {
    for (const handle of handles.reverse()) handle[DISPOSE]?.();
    handles = [];
  }
}

/** Returns the exports of the component for a definition. */
export function exported(definition) {
  const named = (name) => {
    if (definition[name] === undefined) throw new Error(`the plugin has no function ${name}`);
    return definition[name].bind(definition);
  };
  const operation = (name, raws, run) =>
    during(raws, () => {
      if (definition[name] === undefined) throw { name: 'Unsupported' };
      return run(definition[name].bind(definition));
    });
  const object = (raw) => new HostObject(raw);
  return {
    plugin: {
      describe: () => ({
        name: definition.name,
        version: definition.version,
        description: definition.description ?? '',
        objectKinds: definition.kinds ?? [],
        taintKeys: definition.taintKeys ?? [],
        configSchema: definition.configSchema === undefined ? '' : JSON.stringify(definition.configSchema),
        reusable: definition.reusable ?? false,
        annotations: [['language', 'javascript']],
      }),
      configure: (text) =>
        during([], () => {
          const value = JSON.parse(text);
          config = definition.configure === undefined ? value : definition.configure(value);
        }),
    },
    health: {
      interpret: (observed) => during([observed], () => convert.health(named('health')(object(observed), call))),
    },
    taints: {
      decide: (cluster) =>
        during([cluster], () => convert.taints(named('clusterTaint')(new HostCluster(cluster), call))),
    },
    filter: {
      filter: (binding, candidates) =>
        during([binding, candidates], () =>
          convert.filters(named('filter')(new HostBinding(binding), new HostClusters(candidates), call)),
        ),
    },
    score: {
      score: (binding, feasible) =>
        during([binding, feasible], () =>
          convert.scores(named('score')(new HostBinding(binding), new HostClusters(feasible), call)),
        ),
    },
    eviction: {
      check: (binding, task) =>
        during([binding, task], () =>
          convert.eviction(named('evictionCheck')(new HostBinding(binding), new HostEvictionTask(task), call)),
        ),
    },
    interpreter: {
      interpretReplicas: (template) =>
        operation('replicas', [template], (run) => convert.replicas(run(object(template), call))),
      interpretComponents: (template) =>
        operation('components', [template], (run) => convert.components(run(object(template), call))),
      reviseReplicas: (template, replicas) =>
        operation('reviseReplicas', [template], (run) =>
          convert.edits('reviseReplicas', run(object(template), replicas, call)),
        ),
      retain: (desired, observed) =>
        operation('retain', [desired, observed], (run) =>
          convert.edits('retain', run(object(desired), object(observed), call)),
        ),
      reflectStatus: (observed) =>
        operation('reflectStatus', [observed], (run) => {
          const status = run(object(observed), call);
          return status === undefined ? undefined : JSON.stringify(status);
        }),
      aggregateStatus: (template, reports) =>
        operation('aggregateStatus', [template, reports], (run) =>
          convert.edits('aggregateStatus', run(object(template), new HostObservations(reports), call)),
        ),
      interpretDependencies: (template) =>
        operation('dependencies', [template], (run) => convert.dependencies(run(object(template), call))),
    },
  };
}
