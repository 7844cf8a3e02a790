// Lets workloads run only on clusters with a label.

import { definePlugin, fit, unfit } from '#bulkhead';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { key: { type: 'string', minLength: 1 } },
    additionalProperties: false,
    examples: [null, { key: 'tier' }],
  },

  configure: (config) => config?.key ?? 'example.io/allowed',

  filter(binding, candidates, call) {
    const key = call.config;
    return candidates.label(key).map((label) => (label === undefined ? unfit('NoLabel', `no label ${key}`) : fit()));
  },
});
