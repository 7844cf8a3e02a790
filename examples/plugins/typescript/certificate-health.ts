// Reports the health of a cert-manager Certificate from its conditions.

import { definePlugin, healthy, unhealthy, unknown } from '#bulkhead';

export default definePlugin({
  name: 'certificate-health',
  version: '0.1.0',
  kinds: [{ apiVersion: 'cert-manager.io/v1', kind: 'Certificate' }],
  reusable: true,

  health(observed) {
    const types = observed.each('/status/conditions', '/type');
    const ready = types.indexOf('Ready');
    const issuing = types.indexOf('Issuing');
    const text = (condition: number, field: string) => observed.text(`/status/conditions/${condition}/${field}`) ?? '';
    if (ready < 0) return unknown('NotObserved', 'there is no condition Ready');
    const generation = observed.integer('/metadata/generation') ?? 0;
    const seen = observed.integer(`/status/conditions/${ready}/observedGeneration`) ?? generation;
    if (seen < generation) return unknown('NotObserved', `the condition is about generation ${seen} of ${generation}`);
    const status = text(ready, 'status');
    const message = text(ready, 'message');
    if (status === 'True') return healthy('Ready', message);
    if (status !== 'False') return unknown('ReadyUnknown', message);
    if (issuing >= 0 && text(issuing, 'status') === 'True') return unknown('Issuing', text(issuing, 'message'));
    return unhealthy('NotReady', message);
  },
});
