// Taints a cluster that is not ready, and removes the taint when it is ready again.

import { addTaint, definePlugin, removeTaint } from '#bulkhead';

const KEY = 'example.io/not-ready';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  taintKeys: [KEY],
  reusable: true,

  clusterTaint(cluster) {
    const ready = cluster.condition('Ready');
    if (ready === undefined) return [];
    const isReady = ready.status === 'True';
    const isTainted = cluster.taints.some((taint) => taint.key === KEY);
    if (!isReady && !isTainted) return [addTaint(KEY, 'NoSchedule', 'NotReady', ready.message)];
    if (isReady && isTainted) return [removeTaint(KEY, 'NoSchedule', 'Ready', 'it is ready again')];
    return [];
  },
});
