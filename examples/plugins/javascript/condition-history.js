// Taints a cluster that has not been ready for a while, and removes the taint when it has been ready for longer.

import { addTaint, definePlugin, removeTaint } from '#bulkhead';

const KEY = 'example.io/unstable';
const SECONDS = { type: 'integer', minimum: 0, maximum: 86400 };

export default definePlugin({
  name: 'condition-history',
  version: '0.1.0',
  taintKeys: [KEY],
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { addAfterSeconds: SECONDS, removeAfterSeconds: SECONDS },
    additionalProperties: false,
    examples: [null, { addAfterSeconds: 30, removeAfterSeconds: 600 }],
  },

  configure: (config) => ({ addAfter: config?.addAfterSeconds ?? 60, removeAfter: config?.removeAfterSeconds ?? 300 }),

  clusterTaint(cluster, call) {
    const { addAfter, removeAfter } = call.config;
    const ready = cluster.condition('Ready');
    if (ready?.lastTransitionSeconds === undefined) return [];
    const age = Math.floor(call.now.getTime() / 1000) - ready.lastTransitionSeconds;
    const isReady = ready.status === 'True';
    const isTainted = cluster.taints.some((taint) => taint.key === KEY);
    if (!isReady && !isTainted && age >= addAfter) {
      const message = `not ready for ${age} s, the limit is ${addAfter} s`;
      return [addTaint(KEY, 'NoSchedule', 'NotReadyForLong', message)];
    }
    if (isReady && isTainted && age >= removeAfter) {
      const message = `ready for ${age} s, the limit is ${removeAfter} s`;
      return [removeTaint(KEY, 'NoSchedule', 'ReadyForLong', message)];
    }
    return [];
  },
});
