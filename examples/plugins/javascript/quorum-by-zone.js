// Holds an eviction until other healthy copies run in a majority of the zones.

import { abstain, definePlugin, hold, release } from '#bulkhead';

export default definePlugin({
  name: 'quorum-by-zone',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { zones: { type: 'object', additionalProperties: { type: 'string', minLength: 1 } } },
    additionalProperties: false,
    examples: [null, { zones: { member1: 'a', member2: 'b', member3: 'c' } }],
  },

  configure: (config) => new Map(Object.entries(config?.zones ?? {})),

  evictionCheck(binding, task, call) {
    const zones = call.config;
    const all = new Set(zones.values()).size;
    if (all === 0) return abstain();
    const from = task.fromCluster;
    const reports = binding.observed;
    const states = reports.health();
    const healthy = new Set();
    reports.clusters().forEach((cluster, i) => {
      const zone = zones.get(cluster);
      if (zone !== undefined && cluster !== from && states[i] === 'Healthy') healthy.add(zone);
    });
    const needed = Math.floor(all / 2) + 1;
    const message = `healthy copies in ${healthy.size} of ${all} zones`;
    if (healthy.size >= needed) return release('Quorum', message);
    return hold('NoQuorum', `${message}, ${needed} are needed`);
  },
});
