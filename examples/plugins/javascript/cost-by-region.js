// Prefers clusters of cheap regions: the cheapest has 100, one at twice its price 50, one without a price 0.

import { definePlugin } from '#bulkhead';

export default definePlugin({
  name: 'cost-by-region',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: {
      prices: { type: 'object', additionalProperties: { type: 'integer', minimum: 1, maximum: 1000000 } },
    },
    additionalProperties: false,
    examples: [null, { prices: { 'eu-west': 40, 'us-east': 30 } }],
  },

  configure(config) {
    const prices = Object.entries(config?.prices ?? {});
    const cheapest = Math.min(...prices.map(([, price]) => price));
    return new Map(prices.map(([region, price]) => [region, Math.floor((100 * cheapest) / price)]));
  },

  score: (binding, feasible, call) => feasible.regions().map((region) => call.config.get(region) ?? 0),
});
