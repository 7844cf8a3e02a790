import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bindingOf, callOf, clustersOf } from '#bulkhead/testing';

import type { Json } from '#bulkhead';

import plugin from '../src/plugin';

const clusters = clustersOf([
  { name: 'member1', spec: { region: 'us-east' } },
  { name: 'member2', spec: { region: 'eu-west' } },
]);
const scores = (config: Json) => plugin.score!(bindingOf({}), clusters, callOf(plugin, { config }));

test('clusters of the region come first', () => {
  assert.deepEqual(scores(null), [0, 100]);
});

test('the configuration names the region', () => {
  assert.deepEqual(scores({ region: 'us-east' }), [100, 0]);
});
