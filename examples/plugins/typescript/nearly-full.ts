// Taints a cluster whose pods are nearly all in use, and removes the taint when there is room again.

import { addTaint, definePlugin, removeTaint } from '#bulkhead';

type Settings = { addAtPercent?: number; removeBelowPercent?: number } | null;

const KEY = 'example.io/nearly-full';
const PERCENT = { type: 'integer', minimum: 1, maximum: 100 };

export default definePlugin<{ addAt: number; removeBelow: number }>({
  name: 'nearly-full',
  version: '0.1.0',
  taintKeys: [KEY],
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { addAtPercent: PERCENT, removeBelowPercent: PERCENT },
    additionalProperties: false,
    examples: [null, { addAtPercent: 95, removeBelowPercent: 80 }],
  },

  configure(config) {
    const settings = config as Settings;
    return { addAt: settings?.addAtPercent ?? 90, removeBelow: settings?.removeBelowPercent ?? 75 };
  },

  clusterTaint(cluster, call) {
    const { addAt, removeBelow } = call.config;
    const document = cluster.document;
    const allocatable = document.quantityMilli('/status/resourceSummary/allocatable/pods') ?? 0;
    const allocated = document.quantityMilli('/status/resourceSummary/allocated/pods') ?? 0;
    if (allocatable <= 0) return [];
    const used = Math.floor(Math.min((100 * Math.max(allocated, 0)) / allocatable, 999));
    const message = `${used} % of the pods are in use`;
    const isTainted = cluster.taints.some((taint) => taint.key === KEY);
    if (!isTainted && used >= addAt) return [addTaint(KEY, 'PreferNoSchedule', 'NearlyFull', message)];
    if (isTainted && used < removeBelow) return [removeTaint(KEY, 'PreferNoSchedule', 'RoomForPods', message)];
    return [];
  },
});
