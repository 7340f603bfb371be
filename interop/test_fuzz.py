"""A short run of interop.fuzz."""

from interop.clustertest import ClusterTest
from interop.fuzz import run

TRIES = 500


class Fuzz(ClusterTest):
    jobs = {"worker": 1}

    def test_random_operations(self):
        found = run.run(TRIES, seed=1, ops=None, server=self.server, shown=1)
        self.assertEqual(found.different, 0)
        self.assertGreater(found.succeeded, TRIES // 2)
