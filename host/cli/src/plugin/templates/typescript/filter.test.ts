import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bindingOf, callOf, clustersOf } from '#bulkhead/testing';

import type { Json } from '#bulkhead';

import plugin from '../src/plugin';

const clusters = clustersOf([
  { name: 'member1', labels: { 'example.io/allowed': 'yes' } },
  { name: 'member2', labels: { tier: '1' } },
]);
const verdicts = (config: Json) =>
  plugin.filter!(bindingOf({}), clusters, callOf(plugin, { config })).map((found) => found.verdict);

test('only clusters with the label fit', () => {
  assert.deepEqual(verdicts(null), ['fit', 'unfit']);
});

test('the configuration names the label', () => {
  assert.deepEqual(verdicts({ key: 'tier' }), ['unfit', 'fit']);
});
