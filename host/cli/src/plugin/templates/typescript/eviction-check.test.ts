import assert from 'node:assert/strict';
import { test } from 'node:test';

import { bindingOf, callOf, taskOf } from '#bulkhead/testing';

import plugin from '../src/plugin';

function check(available: number) {
  const reports = [
    { clusterName: 'member1', applied: true, status: { availableReplicas: 3 } },
    { clusterName: 'member2', applied: true, status: { availableReplicas: available } },
  ];
  const binding = bindingOf({ spec: { replicas: 3 } }, reports);
  return plugin.evictionCheck!(binding, taskOf({ fromCluster: 'member1' }), callOf(plugin));
}

test('the old copy is held while replicas are missing', () => {
  const verdict = check(2);
  assert(verdict.verdict === 'hold');
  assert.equal(verdict.reason.message, '2 of 3 replicas are available elsewhere');
});

test('the old copy goes when all are available', () => {
  assert.equal(check(3).verdict, 'release');
});
