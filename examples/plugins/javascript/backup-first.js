// Holds an eviction until the old copy reports a complete backup, or until that takes too long.

import { definePlugin, hold, release } from '#bulkhead';

const RECHECK = 30; // seconds between two checks

export default definePlugin({
  name: 'backup-first',
  version: '0.1.0',
  reusable: true,
  configSchema: {
    type: ['object', 'null'],
    properties: { maxSeconds: { type: 'integer', minimum: 1, maximum: 604800 } },
    additionalProperties: false,
    examples: [null, { maxSeconds: 600 }],
  },

  configure: (config) => config?.maxSeconds ?? 3600,

  evictionCheck(binding, task, call) {
    const from = task.fromCluster;
    const since = task.sinceSeconds;
    const reports = binding.observed;
    const clusters = reports.clusters();
    const found = reports.text('/backup/phase').find((text, i) => clusters[i] === from && text);
    const phase = found ?? 'missing';
    if (phase === 'Completed') return release('BackupCompleted');
    const message = `the backup in ${from} is ${phase}`;
    const now = Math.floor(call.now.getTime() / 1000);
    const left = since === undefined ? RECHECK : call.config - (now - since);
    if (left <= 0) return release('BackupOverdue', `${message} after ${call.config} s`);
    return hold('BackupPending', message, Math.min(left, RECHECK));
  },
});
