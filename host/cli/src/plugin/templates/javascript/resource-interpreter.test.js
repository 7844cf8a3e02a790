import assert from 'node:assert/strict';
import { test } from 'node:test';

import { callOf, objectOf } from '#bulkhead/testing';

import plugin from '../src/plugin.js';

const call = callOf(plugin);

test('rooms are replicas', () => {
  assert.equal(plugin.replicas(objectOf({ spec: { rooms: 3 } }), call).count, 3);
});

test('rooms are revised', () => {
  const edits = plugin.reviseReplicas(objectOf({ spec: { rooms: 3 } }), 5, call);
  assert.deepEqual(edits, [{ set: { pointer: '/spec/rooms', value: 5 } }]);
});

test('a running game is healthy', () => {
  assert.equal(plugin.health(objectOf({ status: { phase: 'Running' } }), call).health, 'Healthy');
});
