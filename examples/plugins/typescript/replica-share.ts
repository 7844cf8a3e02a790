// Reports a StatefulSet as healthy while a share of its replicas is ready.

import { definePlugin, healthy, unhealthy } from '#bulkhead';

type Settings = { percent?: number } | null;

export default definePlugin<number>({
  name: 'replica-share',
  version: '0.1.0',
  kinds: [{ apiVersion: 'apps/v1', kind: 'StatefulSet' }],
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { percent: { type: 'integer', minimum: 1, maximum: 100 } },
    additionalProperties: false,
    examples: [null, { percent: 50 }],
  },

  configure: (config) => (config as Settings)?.percent ?? 100,

  health(observed, call) {
    const count = (pointer: string, otherwise: number) =>
      Math.min(Math.max(observed.integer(pointer) ?? otherwise, 0), 2 ** 31 - 1);
    const desired = count('/spec/replicas', 1);
    const ready = count('/status/readyReplicas', 0);
    if (desired === 0) return healthy('NoReplicas');
    const needed = Math.ceil((call.config * desired) / 100);
    const message = `${ready} of ${desired} replicas are ready, ${needed} are needed`;
    return ready >= needed ? healthy('EnoughReplicas', message) : unhealthy('TooFewReplicas', message);
  },
});
