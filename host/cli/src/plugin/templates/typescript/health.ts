// Reports the health of a Deployment.

import { definePlugin, healthy, unhealthy, unknown } from '#bulkhead';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  kinds: [{ apiVersion: 'apps/v1', kind: 'Deployment' }],
  reusable: true,

  health(observed) {
    const desired = observed.integer('/spec/replicas');
    if (desired === undefined) return unknown('NoReplicas', 'spec.replicas is missing or not a number');
    const ready = observed.integer('/status/readyReplicas') ?? 0;
    const message = `${ready} of ${desired} replicas are ready`;
    return ready >= desired ? healthy('Ready', message) : unhealthy('NotReady', message);
  },
});
