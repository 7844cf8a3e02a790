import unittest

from bulkhead.testing import binding_of, call, clusters_of

import plugin

CLUSTERS = [{"name": "member1", "labels": {"example.io/allowed": "yes"}}, {"name": "member2", "labels": {"tier": "1"}}]


class FilterTest(unittest.TestCase):
    def test_only_clusters_with_the_label_fit(self):
        with call():
            verdicts = plugin.filter_clusters(binding_of({}), clusters_of(CLUSTERS))
        self.assertEqual([verdict.fits for verdict in verdicts], [True, False])

    def test_the_configuration_names_the_label(self):
        with call(config={"key": "tier"}):
            verdicts = plugin.filter_clusters(binding_of({}), clusters_of(CLUSTERS))
        self.assertEqual([verdict.fits for verdict in verdicts], [False, True])
