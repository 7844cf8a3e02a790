// Holds old copies until the clusters that the workload moved to report as many available replicas as are desired.

import { definePlugin, hold, release } from '#bulkhead';

export default definePlugin({
  name: '{{name}}',
  version: '0.1.0',
  reusable: true,

  evictionCheck(binding, task) {
    const desired = binding.replicas;
    const reports = binding.observed;
    const clusters = reports.clusters();
    const elsewhere = reports
      .number('/availableReplicas')
      .map((number, index) => (clusters[index] === task.fromCluster ? 0 : Math.max(number ?? 0, 0)));
    const available = elsewhere.reduce((sum, number) => sum + number, 0);
    const message = `${available} of ${desired} replicas are available elsewhere`;
    return desired > 0 && available >= desired ? release('Available', message) : hold('NotAvailable', message);
  },
});
