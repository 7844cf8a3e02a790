// Conversion of the values that a plugin returns, with errors that name the function and the expected type.
//
// A list has an element for each cluster, so conversions make texts and tables for errors only.

const kind = (value) => (value === null ? 'null' : Array.isArray(value) ? 'a list' : `a value of type ${typeof value}`);

function object(where, value, expected) {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    const hint = typeof value?.then === 'function' ? '; functions of a plugin cannot be async' : '';
    throw new TypeError(`${where} must return ${expected}, not ${kind(value)}${hint}`);
  }
  if (typeof value.then === 'function') {
    throw new TypeError(`${where} must return ${expected}, not a promise; functions of a plugin cannot be async`);
  }
  return value;
}

/** Converts each element. `convert` gets an object whose text names the element in an error. */
function list(name, values, convert) {
  if (!Array.isArray(values)) throw new TypeError(`${name} must return a list, not ${kind(values)}`);
  const where = { index: 0, toString: () => `${name}, element ${where.index},` };
  const found = new Array(values.length);
  for (let index = 0; index < found.length; index++) {
    where.index = index;
    found[index] = convert(values[index], where);
  }
  return found;
}

function oneOf(where, table, value) {
  if (!Object.hasOwn(table, value)) {
    throw new TypeError(`${where}: ${JSON.stringify(value)} is not known; known are ${Object.keys(table).join(', ')}`);
  }
  return table[value];
}

function reason(where, value) {
  if (typeof value?.code !== 'string') throw new TypeError(`${where}: the reason has no code`);
  return { code: value.code, message: String(value.message ?? '') };
}

const OPINIONS = { fit: 'fit', unfit: 'unfit', abstain: 'abstain' };
const DECISIONS = { release: 'release', hold: 'hold', abstain: 'abstain' };
const STATES = { Healthy: 'healthy', Unhealthy: 'unhealthy', Unknown: 'unknown' };
const EFFECTS = { NoSchedule: 'no-schedule', PreferNoSchedule: 'prefer-no-schedule', NoExecute: 'no-execute' };

export function health(verdict) {
  object('health', verdict, 'healthy(), unhealthy() or unknown()');
  return { state: oneOf('health', STATES, verdict.health), reason: reason('health', verdict.reason) };
}

export function taints(changes) {
  return list('clusterTaint', changes, (change, where) => {
    object(where, change, 'addTaint() or removeTaint()');
    const body = change.add ?? change.remove;
    object(where, body, 'addTaint() or removeTaint()');
    const taint = { key: body.key, effect: oneOf(where, EFFECTS, body.effect), reason: reason(where, change.reason) };
    return change.add ? { tag: 'add', val: { value: body.value ?? '', ...taint } } : { tag: 'remove', val: taint };
  });
}

export function filters(verdicts) {
  return list('filter', verdicts, (found, where) => {
    object(where, found, 'fit(), unfit() or abstain()');
    const tag = oneOf(where, OPINIONS, found.verdict);
    return tag === 'unfit' ? { tag, val: reason(where, found.reason) } : { tag };
  });
}

export function scores(values) {
  return list('score', values, (score, where) => {
    if (!Number.isInteger(score) || score < 0 || score > 100) {
      throw new RangeError(`${where} must be an integer from 0 to 100, not ${JSON.stringify(score) ?? score}`);
    }
    return score;
  });
}

export function eviction(found) {
  const where = 'evictionCheck';
  object(where, found, 'release(), hold() or abstain()');
  const tag = oneOf(where, DECISIONS, found.verdict);
  if (tag === 'release') return { tag, val: reason(where, found.reason) };
  if (tag === 'hold') {
    return { tag, val: { reason: reason(where, found.reason), recheckAfterS: found.recheckAfterSeconds } };
  }
  return { tag };
}

const json = (value) => (value === undefined ? undefined : JSON.stringify(value));

function requirements(value) {
  if (value === undefined || value === null) return undefined;
  return {
    requests: Object.entries(value.requests ?? {}).sort(([a], [b]) => (a < b ? -1 : 1)),
    nodeClaim: json(value.nodeClaim),
    namespace: value.namespace,
    priorityClassName: value.priorityClassName,
  };
}

function count(where, value) {
  if (!Number.isInteger(value)) throw new TypeError(`${where} must be an integer, not ${kind(value)}`);
  return value;
}

export function replicas(value) {
  object('replicas', value, '{ count }');
  return { count: count('replicas: count', value.count), requirements: requirements(value.requirements) };
}

export function components(values) {
  return list('components', values, (value, where) => ({
    name: object(where, value, '{ name, replicas }').name,
    replicas: count(`${where} replicas`, value.replicas),
    requirements: requirements(value.requirements),
  }));
}

export function edits(name, values) {
  return list(name, values, (edit, where) => {
    object(where, edit, 'set() or remove()');
    if (typeof edit.remove === 'string') return { tag: 'remove', val: edit.remove };
    object(where, edit.set, 'set() or remove()');
    return { tag: 'set', val: { pointer: edit.set.pointer, json: JSON.stringify(edit.set.value ?? null) } };
  });
}

export function dependencies(values) {
  return list('dependencies', values, (value, where) => ({
    apiVersion: object(where, value, '{ apiVersion, kind }').apiVersion,
    kind: value.kind,
    namespace: value.namespace ?? '',
    name: value.name,
    labelSelector: json(value.labelSelector),
  }));
}
