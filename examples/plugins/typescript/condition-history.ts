// Taints a cluster whose condition Ready keeps changing, and removes the taint when it has been stable for a while.

import { addTaint, definePlugin, removeTaint } from '#bulkhead';

type Settings = { changes?: number; windowSeconds?: number } | null;

const KEY = 'example.io/flapping';

export default definePlugin<{ changes: number; window: number }>({
  name: 'condition-history',
  version: '0.1.0',
  taintKeys: [KEY],
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: {
      changes: { type: 'integer', minimum: 1, maximum: 7 },
      windowSeconds: { type: 'integer', minimum: 1, maximum: 86400 },
    },
    additionalProperties: false,
    examples: [null, { changes: 5, windowSeconds: 3600 }],
  },

  configure(config) {
    const settings = config as Settings;
    return { changes: settings?.changes ?? 3, window: settings?.windowSeconds ?? 600 };
  },

  clusterTaint(cluster, call) {
    const { changes, window } = call.config;
    const start = call.now.getTime() - window * 1000;
    const history = cluster.document.each('/conditionHistory/Ready', '/since');
    // The first entry is the start of the history.
    const recent = history.slice(1).filter((since) => Date.parse(String(since)) > start).length;
    const isReady = cluster.condition('Ready')?.status === 'True';
    const isTainted = cluster.taints.some((taint) => taint.key === KEY);
    if (!isTainted && recent >= changes) {
      const message = `the condition Ready has changed ${recent} times in ${window} s`;
      return [addTaint(KEY, 'NoSchedule', 'Flapping', message)];
    }
    if (isTainted && isReady && recent === 0) {
      return [removeTaint(KEY, 'NoSchedule', 'Stable', `the condition Ready has not changed in ${window} s`)];
    }
    return [];
  },
});
