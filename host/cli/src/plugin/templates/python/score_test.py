import unittest

from bulkhead.testing import binding_of, call, clusters_of

import plugin

CLUSTERS = [{"name": "member1", "spec": {"region": "us-east"}}, {"name": "member2", "spec": {"region": "eu-west"}}]


class ScoreTest(unittest.TestCase):
    def test_clusters_of_the_region_come_first(self):
        with call():
            self.assertEqual(plugin.score(binding_of({}), clusters_of(CLUSTERS)), [0, 100])

    def test_the_configuration_names_the_region(self):
        with call(config={"region": "us-east"}):
            self.assertEqual(plugin.score(binding_of({}), clusters_of(CLUSTERS)), [100, 0])
