// Prefers clusters of one region.

import { definePlugin } from '#bulkhead';

type Settings = { region?: string } | null;

export default definePlugin<string>({
  name: '{{name}}',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { region: { type: 'string' } },
    additionalProperties: false,
    examples: [null, { region: 'us-east' }],
  },

  configure: (config) => (config as Settings)?.region ?? 'eu-west',

  score(binding, feasible, call) {
    return feasible.regions().map((region) => (region === call.config ? 100 : 0));
  },
});
