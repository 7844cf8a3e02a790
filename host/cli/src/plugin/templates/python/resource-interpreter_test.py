import unittest

from bulkhead import Edit, Health
from bulkhead.testing import object_of

import plugin


class InterpreterTest(unittest.TestCase):
    def test_rooms_are_replicas(self):
        self.assertEqual(plugin.replicas(object_of({"spec": {"rooms": 3}})).count, 3)

    def test_rooms_are_revised(self):
        self.assertEqual(plugin.revise_replicas(object_of({"spec": {"rooms": 3}}), 5), [Edit.set("/spec/rooms", 5)])

    def test_a_running_game_is_healthy(self):
        verdict = plugin.interpret_health(object_of({"status": {"phase": "Running"}}))
        self.assertEqual(verdict.health, Health.HEALTHY)
