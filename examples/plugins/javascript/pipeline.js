// Interprets stages, secrets, status and health of a Pipeline of example.io/v1.

import { definePlugin, healthy, set, unhealthy, unknown } from '#bulkhead';

const RECORDS_MAX = 1e12; // largest number of records that a cluster can report

const isText = (value) => typeof value === 'string' && value !== '';

export default definePlugin({
  name: 'pipeline',
  version: '0.1.0',
  kinds: [{ apiVersion: 'example.io/v1', kind: 'Pipeline' }],
  reusable: true,

  health(observed) {
    const phase = observed.text('/status/phase');
    if (phase === 'Running' || phase === 'Done') return healthy(phase);
    return phase === 'Failed' ? unhealthy(phase) : unknown('UnknownPhase');
  },

  components(template) {
    const workers = template.each('/spec/stages', '/workers');
    const found = new Map();
    template.each('/spec/stages', '/name').forEach((name, i) => {
      if (!isText(name) || found.has(name)) return;
      const replicas = Number.isInteger(workers[i]) ? Math.min(Math.max(workers[i], 0), 2 ** 31 - 1) : 1;
      found.set(name, { name, replicas });
    });
    return [...found.values()];
  },

  reflectStatus(observed) {
    const phase = observed.text('/status/phase');
    const records = observed.integer('/status/records');
    if (phase === undefined && records === undefined) return undefined;
    return { ...(phase !== undefined && { phase }), ...(records !== undefined && { records }) };
  },

  aggregateStatus(template, reports) {
    const phases = reports.text('/phase');
    const records = reports
      .number('/records')
      .reduce((sum, found) => sum + Math.floor(Math.min(Math.max(found ?? 0, 0), RECORDS_MAX)), 0);
    const isDone = phases.length > 0 && phases.every((phase) => phase === 'Done');
    const phase = phases.includes('Failed') ? 'Failed' : isDone ? 'Done' : 'Running';
    return [set('/status', { phase, records })];
  },

  dependencies(template) {
    const namespace = template.text('/metadata/namespace') ?? '';
    const secret = (name) => ({ apiVersion: 'v1', kind: 'Secret', namespace, name });
    return template.each('/spec/stages', '/secret').filter(isText).map(secret);
  },
});
