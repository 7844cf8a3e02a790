// Prefers clusters with a large free share of a resource: 100 if all of it is free, 0 if it is not reported.

import { definePlugin } from '#bulkhead';

export default definePlugin({
  name: 'free-share',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { resource: { type: 'string', minLength: 1 } },
    additionalProperties: false,
    examples: [null, { resource: 'memory' }],
  },

  configure: (config) => config?.resource ?? 'cpu',

  score(binding, feasible, call) {
    const free = feasible.free(call.config);
    return feasible.allocatable(call.config).map((all, i) => {
      if (all === undefined || free[i] === undefined || all <= 0) return 0;
      return Math.floor(Math.min(Math.max((100 * free[i]) / all, 0), 100));
    });
  },
});
