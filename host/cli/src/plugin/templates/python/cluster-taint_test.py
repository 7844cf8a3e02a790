import unittest

from bulkhead import AddTaint, RemoveTaint
from bulkhead.testing import cluster_of

import plugin


def cluster(ready, taints=()):
    condition = {"type": "Ready", "status": ready, "message": "no answer"}
    return cluster_of({"name": "member1", "spec": {"taints": list(taints)}, "status": {"conditions": [condition]}})


class ClusterTaintTest(unittest.TestCase):
    def test_a_cluster_that_is_not_ready_gets_the_taint(self):
        [change] = plugin.decide(cluster("False"))
        self.assertIsInstance(change, AddTaint)
        self.assertEqual(change.reason.message, "no answer")

    def test_the_taint_goes_when_it_is_ready_again(self):
        [change] = plugin.decide(cluster("True", [{"key": plugin.KEY, "effect": "NoSchedule"}]))
        self.assertIsInstance(change, RemoveTaint)

    def test_a_ready_cluster_is_left_alone(self):
        self.assertEqual(plugin.decide(cluster("True")), [])
