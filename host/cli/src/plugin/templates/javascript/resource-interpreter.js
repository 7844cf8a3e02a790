// Interprets replicas and health of a custom resource, here a Game of example.io/v1.

import { definePlugin, healthy, set, unhealthy, unknown } from '#bulkhead';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  kinds: [{ apiVersion: 'example.io/v1', kind: 'Game' }],
  reusable: true,

  health(observed) {
    const phase = observed.text('/status/phase');
    if (phase === undefined) return unknown('NoPhase');
    return phase === 'Running' ? healthy('Running') : unhealthy('NotRunning', `its phase is ${phase}`);
  },

  replicas(template) {
    const rooms = template.integer('/spec/rooms') ?? 0;
    return { count: Math.min(Math.max(rooms, 0), 2 ** 31 - 1) };
  },

  reviseReplicas(template, replicas) {
    return template.kind('/spec') === 'map' ? [set('/spec/rooms', replicas)] : [set('/spec', { rooms: replicas })];
  },
});
