import unittest

from bulkhead.testing import binding_of, task_of

import plugin

TASK = task_of({"fromCluster": "member1"})


def binding(available):
    reports = [
        {"clusterName": "member1", "applied": True, "status": {"availableReplicas": 3}},
        {"clusterName": "member2", "applied": True, "status": {"availableReplicas": available}},
    ]
    return binding_of({"spec": {"replicas": 3}}, reports)


class EvictionCheckTest(unittest.TestCase):
    def test_the_old_copy_is_held_while_replicas_are_missing(self):
        verdict = plugin.check(binding(2), TASK)
        self.assertFalse(verdict.releases)
        self.assertEqual(verdict.reason.message, "2 of 3 replicas are available elsewhere")

    def test_the_old_copy_goes_when_all_are_available(self):
        self.assertTrue(plugin.check(binding(3), TASK).releases)
