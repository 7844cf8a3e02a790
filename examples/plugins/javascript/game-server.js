// Interprets replicas, requirements, retained fields and health of a GameServer of example.io/v1.

import { definePlugin, healthy, set, unhealthy, unknown } from '#bulkhead';

const CPU_MAX = 1_000_000_000; // largest processor time of a room in thousandths of a core

function rooms(server) {
  const found = server.integer('/spec/rooms');
  return found === undefined ? undefined : Math.min(Math.max(found, 0), 2 ** 31 - 1);
}

// Returns the edits that write the rooms of a server.
function withRooms(server, count) {
  return server.kind('/spec') === 'map' ? [set('/spec/rooms', count)] : [set('/spec', { rooms: count })];
}

export default definePlugin({
  name: 'game-server',
  version: '0.1.0',
  kinds: [{ apiVersion: 'example.io/v1', kind: 'GameServer' }],
  reusable: true,

  health(observed) {
    const phase = observed.text('/status/phase');
    if (phase === undefined) return unknown('NoPhase');
    return phase === 'Running' ? healthy('Running') : unhealthy('NotRunning', `its phase is ${phase}`);
  },

  replicas(template) {
    const count = rooms(template) ?? 0;
    const milli = template.quantityMilli('/spec/roomCpu') ?? 0;
    if (milli <= 0) return { count };
    return { count, requirements: { requests: { cpu: `${Math.min(milli, CPU_MAX)}m` } } };
  },

  reviseReplicas: (template, replicas) => withRooms(template, replicas),

  retain(desired, observed) {
    const count = rooms(observed);
    return observed.boolean('/spec/autoscaled') && count !== undefined ? withRooms(desired, count) : [];
  },
});
