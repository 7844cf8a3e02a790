import unittest

from bulkhead import Health
from bulkhead.testing import object_of

import plugin


class HealthTest(unittest.TestCase):
    def test_a_missing_replica_is_unhealthy(self):
        verdict = plugin.interpret(object_of({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}}))
        self.assertEqual(verdict.health, Health.UNHEALTHY)
        self.assertEqual(verdict.reason.message, "1 of 2 replicas are ready")

    def test_an_object_of_another_shape_is_unknown(self):
        verdict = plugin.interpret(object_of({"spec": "replicas"}))
        self.assertEqual(verdict.health, Health.UNKNOWN)
