// Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported.

import { definePlugin } from '#bulkhead';

type Settings = { resource?: string } | null;

export default definePlugin<string>({
  name: 'free-share',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { resource: { type: 'string', minLength: 1 } },
    additionalProperties: false,
    examples: [null, { resource: 'memory' }],
  },

  configure: (config) => (config as Settings)?.resource ?? 'cpu',

  score(binding, feasible, call) {
    const free = feasible.free(call.config);
    return feasible.allocatable(call.config).map((all, i) => {
      const amount = free[i];
      if (all === undefined || amount === undefined || all <= 0) return 0;
      return Math.floor(Math.min(Math.max((100 * amount) / all, 0), 100));
    });
  },
});
