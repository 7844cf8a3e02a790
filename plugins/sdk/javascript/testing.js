// A host stub: inputs from plain data, for tests that need no WebAssembly. testing.d.ts describes the functions.

const MISSING = undefined;
const isMap = (value) => value !== null && typeof value === 'object' && !Array.isArray(value);

function lookup(value, pointer) {
  if (pointer === '') return value;
  if (!pointer.startsWith('/')) return MISSING;
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (isMap(value) && Object.hasOwn(value, key)) value = value[key];
    else if (Array.isArray(value) && /^(0|[1-9]\d*)$/.test(key)) value = value[Number(key)];
    else return MISSING;
    if (value === MISSING) return MISSING;
  }
  return value;
}

const ofType = (type, value) => (typeof value === type ? value : undefined);
const scalar = (value) => (value === null || typeof value !== 'object' ? value : undefined);
const integer = (value) => (Number.isInteger(value) ? value : undefined);
const seconds = (time) => (typeof time === 'string' ? Math.floor(Date.parse(time) / 1000) : undefined);

const FACTORS = { n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18 };
const POWERS = { Ki: 1, Mi: 2, Gi: 3, Ti: 4, Pi: 5, Ei: 6 };

function quantity(value) {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined;
  const found = /^([+-]?(?:\d+\.?\d*|\.\d+))([EPTGMkmun]?|[EPTGMK]i|[eE][+-]?\d+)$/.exec(String(value));
  if (found === null) return undefined;
  const [, digits, suffix] = found;
  if (Object.hasOwn(POWERS, suffix)) return Number(digits) * 1024 ** POWERS[suffix];
  return Object.hasOwn(FACTORS, suffix) ? Number(digits) * FACTORS[suffix] : Number(digits + suffix);
}

function kindOf(value) {
  if (value === MISSING) return undefined;
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return { string: 'text', object: 'map' }[typeof value] ?? typeof value;
}

export function objectOf(data) {
  return {
    kind: (pointer) => kindOf(lookup(data, pointer)),
    get: (pointer) => lookup(data, pointer),
    many: (pointers) => pointers.map((pointer) => scalar(lookup(data, pointer))),
    each: (inList, pointer) => {
      const found = lookup(data, inList);
      return Array.isArray(found) ? found.map((item) => scalar(lookup(item, pointer))) : [];
    },
    text: (pointer) => ofType('string', lookup(data, pointer)),
    integer: (pointer) => integer(lookup(data, pointer)),
    number: (pointer) => ofType('number', lookup(data, pointer)),
    boolean: (pointer) => ofType('boolean', lookup(data, pointer)),
    quantityMilli: (pointer) => {
      const found = quantity(lookup(data, pointer));
      return found === undefined ? undefined : Math.ceil(Number((found * 1000).toPrecision(15)));
    },
    length: (pointer) => {
      const found = lookup(data, pointer);
      if (Array.isArray(found)) return found.length;
      return isMap(found) ? Object.keys(found).length : undefined;
    },
    keys: (pointer) => {
      const found = lookup(data, pointer);
      return isMap(found) ? Object.keys(found).sort() : [];
    },
  };
}

const byName = (field) => (a, b) => (a[field] < b[field] ? -1 : 1);

export function observationsOf(reports) {
  const sorted = [...reports].sort(byName('clusterName'));
  const statuses = (pointer) => sorted.map((report) => lookup(report.status, pointer));
  return {
    length: sorted.length,
    clusters: () => sorted.map((report) => report.clusterName),
    applied: () => sorted.map((report) => report.applied ?? false),
    health: () => sorted.map((report) => report.health),
    number: (pointer) => statuses(pointer).map((value) => ofType('number', value)),
    text: (pointer) => statuses(pointer).map((value) => ofType('string', value)),
    status: (index) => (sorted[index]?.status === undefined ? undefined : objectOf(sorted[index].status)),
  };
}

export function bindingOf(data, reports = []) {
  const document = objectOf(data);
  const resource = data.spec?.resource ?? {};
  return {
    namespace: data.namespace,
    name: data.name ?? '',
    workload: { apiVersion: resource.apiVersion ?? '', kind: resource.kind ?? '', name: resource.name ?? '' },
    replicas: data.spec?.replicas ?? 0,
    targets: (data.spec?.clusters ?? []).map(({ name, replicas = 0 }) => ({ cluster: name, replicas })),
    evictingFrom: (data.spec?.gracefulEvictionTasks ?? []).map((task) => task.fromCluster),
    observed: observationsOf(reports),
    document,
  };
}

export function taskOf(data) {
  return {
    fromCluster: data.fromCluster ?? '',
    reason: data.reason ?? '',
    producer: data.producer ?? '',
    sinceSeconds: seconds(data.creationTimestamp),
    gracePeriodSeconds: data.gracePeriodSeconds,
    replicas: data.replicas,
    document: objectOf(data),
  };
}

export function clusterOf(data) {
  const conditions = (data.status?.conditions ?? []).map((condition) => ({
    name: condition.type,
    status: condition.status,
    reason: condition.reason ?? '',
    message: condition.message ?? '',
    lastTransitionSeconds: seconds(condition.lastTransitionTime),
  }));
  const taints = (data.spec?.taints ?? []).map(({ key, value = '', effect, timeAdded }) => ({
    key,
    value,
    effect,
    timeAddedSeconds: seconds(timeAdded),
  }));
  return {
    name: data.name ?? '',
    label: (key) => data.labels?.[key],
    provider: data.spec?.provider ?? '',
    region: data.spec?.region ?? '',
    zones: data.spec?.zones ?? [],
    taints,
    conditions,
    condition: (name) => conditions.find((condition) => condition.name === name),
    serves: (apiVersion, kind) =>
      (data.status?.apiEnablements ?? []).some(
        (group) => group.groupVersion === apiVersion && group.resources.some((served) => served.kind === kind),
      ),
    document: objectOf(data),
  };
}

export function clustersOf(clusters, binding) {
  const sorted = [...clusters].sort(byName('name'));
  const targets = new Map((binding?.targets ?? []).map(({ cluster, replicas }) => [cluster, replicas]));
  const amounts = (resource, withoutRequests) =>
    sorted.map((cluster) => {
      const summary = cluster.status?.resourceSummary ?? {};
      const amount = (part) => quantity(summary[part]?.[resource]);
      const all = amount('allocatable');
      if (all === undefined || !withoutRequests) return all;
      return Math.max(all - (amount('allocated') ?? 0) - (amount('allocating') ?? 0), 0);
    });
  const at = (pointer) => sorted.map((cluster) => lookup(cluster, pointer));
  return {
    length: sorted.length,
    names: () => sorted.map((cluster) => cluster.name),
    ready: () => sorted.map((cluster) => clusterOf(cluster).condition('Ready')?.status === 'True'),
    current: () => sorted.map((cluster) => targets.has(cluster.name)),
    replicas: () => sorted.map((cluster) => targets.get(cluster.name) ?? 0),
    label: (key) => sorted.map((cluster) => cluster.labels?.[key]),
    regions: () => sorted.map((cluster) => cluster.spec?.region ?? ''),
    providers: () => sorted.map((cluster) => cluster.spec?.provider ?? ''),
    allocatable: (resource) => amounts(resource, false),
    free: (resource) => amounts(resource, true),
    text: (pointer) => at(pointer).map((value) => ofType('string', value)),
    number: (pointer) => at(pointer).map((value) => ofType('number', value)),
    get: (index) => (sorted[index] === undefined ? undefined : clusterOf(sorted[index])),
  };
}

export function callOf(definition, { now = '2026-01-01T12:00:00Z', config = null, seed = 0n } = {}) {
  const lines = [];
  return {
    config: definition.configure === undefined ? config : definition.configure(config),
    now: new Date(now),
    seed,
    pluginName: definition.name,
    log: (level, message) => lines.push({ level, message }),
    lines,
  };
}
