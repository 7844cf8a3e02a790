// Write Bulkhead policy plugins in JavaScript and TypeScript; index.d.ts describes every function.

/** Leaves the answer to the next policy. */
export class Unsupported extends Error {
  constructor() {
    super('the plugin does not handle this');
    this.name = 'Unsupported';
  }
}

/** Rejects a configuration; the message describes a valid one. */
export class InvalidConfig extends Error {
  constructor(message) {
    super(message);
    this.name = 'InvalidConfig';
  }
}

const reasoned = (code, message = '') => ({ code, message });

export const healthy = (code, message) => ({ health: 'Healthy', reason: reasoned(code, message) });
export const unhealthy = (code, message) => ({ health: 'Unhealthy', reason: reasoned(code, message) });
export const unknown = (code, message) => ({ health: 'Unknown', reason: reasoned(code, message) });

export const fit = () => ({ verdict: 'fit' });
export const unfit = (code, message) => ({ verdict: 'unfit', reason: reasoned(code, message) });

export const release = (code, message) => ({ verdict: 'release', reason: reasoned(code, message) });
export const hold = (code, message, recheckAfterSeconds) => ({
  verdict: 'hold',
  reason: reasoned(code, message),
  recheckAfterSeconds,
});
export const abstain = () => ({ verdict: 'abstain' });

export const addTaint = (key, effect, code, message, value = '') => ({
  add: { key, value, effect },
  reason: reasoned(code, message),
});
export const removeTaint = (key, effect, code, message) => ({
  remove: { key, effect },
  reason: reasoned(code, message),
});

export const set = (pointer, value) => ({ set: { pointer, value } });
export const remove = (pointer) => ({ remove: pointer });

/** Names of the functions that a plugin may have. */
const FUNCTIONS = [
  'configure',
  'health',
  'clusterTaint',
  'filter',
  'score',
  'evictionCheck',
  'replicas',
  'components',
  'reviseReplicas',
  'retain',
  'reflectStatus',
  'aggregateStatus',
  'dependencies',
];
const FIELDS = ['name', 'version', 'description', 'kinds', 'taintKeys', 'configSchema', 'reusable'];

export function definePlugin(definition) {
  for (const field of ['name', 'version']) {
    if (typeof definition[field] !== 'string') throw new TypeError(`definePlugin: ${field} must be a string`);
  }
  for (const name of Object.keys(definition)) {
    if (FUNCTIONS.includes(name)) {
      if (typeof definition[name] !== 'function') throw new TypeError(`definePlugin: ${name} must be a function`);
    } else if (!FIELDS.includes(name)) {
      throw new TypeError(`definePlugin: ${name} is not known; known are ${[...FIELDS, ...FUNCTIONS].join(', ')}`);
    }
  }
  return definition;
}
