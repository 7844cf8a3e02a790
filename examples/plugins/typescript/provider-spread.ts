// Prefers clusters of providers that run fewer replicas of the workload: 100 for a provider without any.

import { definePlugin } from '#bulkhead';

export default definePlugin({
  name: 'provider-spread',
  version: '0.1.0',
  reusable: true,

  score(binding, feasible) {
    const providers = feasible.providers();
    const sums = new Map<string, number>();
    let total = 0;
    feasible.replicas().forEach((replicas, i) => {
      const provider = providers[i] ?? '';
      sums.set(provider, (sums.get(provider) ?? 0) + replicas);
      total += replicas;
    });
    const share = (provider: string) => Math.floor((100 * (sums.get(provider) ?? 0)) / total);
    return providers.map((provider) => (total > 0 ? 100 - share(provider) : 100));
  },
});
