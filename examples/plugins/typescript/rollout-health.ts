// Reports the health of an Argo Rollout from the phase that its controller writes.

import { definePlugin, healthy, unhealthy, unknown } from '#bulkhead';

export default definePlugin({
  name: 'rollout-health',
  version: '0.1.0',
  kinds: [{ apiVersion: 'argoproj.io/v1alpha1', kind: 'Rollout' }],
  reusable: true,

  health(observed) {
    const generation = observed.integer('/metadata/generation') ?? 0;
    // The controller writes the number as a text.
    const seen = observed.text('/status/observedGeneration') ?? '0';
    if (seen !== String(generation)) {
      return unknown('NotObserved', `the controller has seen generation ${seen} of ${generation}`);
    }
    const phase = observed.text('/status/phase');
    const message = observed.text('/status/message') ?? '';
    if (phase === 'Healthy' || phase === 'Paused') return healthy(phase, message);
    if (phase === 'Degraded' || phase === 'Progressing') return unhealthy(phase, message);
    return unknown('UnknownPhase', message);
  },
});
