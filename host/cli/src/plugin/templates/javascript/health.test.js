import assert from 'node:assert/strict';
import { test } from 'node:test';

import { callOf, objectOf } from '#bulkhead/testing';

import plugin from '../src/plugin.js';

const call = callOf(plugin);

test('a missing replica is unhealthy', () => {
  const verdict = plugin.health(objectOf({ spec: { replicas: 2 }, status: { readyReplicas: 1 } }), call);
  assert.equal(verdict.health, 'Unhealthy');
  assert.equal(verdict.reason.message, '1 of 2 replicas are ready');
});

test('an object of another shape is unknown', () => {
  assert.equal(plugin.health(objectOf({ spec: 'replicas' }), call).health, 'Unknown');
});
