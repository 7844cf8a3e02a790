import assert from 'node:assert/strict';
import { test } from 'node:test';

import { callOf, clusterOf } from '#bulkhead/testing';

import plugin from '../src/plugin';

const call = callOf(plugin);
const KEY = 'example.io/not-ready';

function cluster(ready: string, taints: object[] = []) {
  const conditions = [{ type: 'Ready', status: ready, message: 'no answer' }];
  return clusterOf({ name: 'member1', spec: { taints }, status: { conditions } });
}

test('a cluster that is not ready gets the taint', () => {
  const [change] = plugin.clusterTaint!(cluster('False'), call);
  assert(change && 'add' in change);
  assert.deepEqual(change.add, { key: KEY, value: '', effect: 'NoSchedule' });
  assert.equal(change.reason.message, 'no answer');
});

test('the taint goes when it is ready again', () => {
  const [change] = plugin.clusterTaint!(cluster('True', [{ key: KEY, effect: 'NoSchedule' }]), call);
  assert(change && 'remove' in change);
  assert.deepEqual(change.remove, { key: KEY, effect: 'NoSchedule' });
});

test('a ready cluster is left alone', () => {
  assert.deepEqual(plugin.clusterTaint!(cluster('True'), call), []);
});
