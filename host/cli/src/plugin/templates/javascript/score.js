// Prefers clusters of one region.

import { definePlugin } from '#bulkhead';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { region: { type: 'string' } },
    additionalProperties: false,
    examples: [null, { region: 'us-east' }],
  },

  configure: (config) => config?.region ?? 'eu-west',

  score(binding, feasible, call) {
    return feasible.regions().map((region) => (region === call.config ? 100 : 0));
  },
});
