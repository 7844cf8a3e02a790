// Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any.

import { definePlugin } from '#bulkhead';

export default definePlugin({
  name: 'provider-spread',
  version: '0.1.0',
  reusable: true,

  score(binding, feasible) {
    const providers = feasible.providers();
    const sums = new Map();
    let total = 0;
    feasible.replicas().forEach((replicas, i) => {
      sums.set(providers[i], (sums.get(providers[i]) ?? 0) + replicas);
      total += replicas;
    });
    return providers.map((provider) => (total > 0 ? 100 - Math.floor((100 * sums.get(provider)) / total) : 100));
  },
});
