"""A model server with models of many kinds, written by TensorFlow 2."""

import subprocess
import sys
import tempfile

from interop import cluster
from interop.clustertest import ClusterTest
from interop.serving import check

LIMIT = 300  # seconds for writing the models


class Serving(ClusterTest):
    jobs = {}
    mixes = ["weft"]

    def test_models(self):
        with tempfile.TemporaryDirectory() as folder:
            writer = cluster.ROOT / "interop" / "serving" / "write2.py"
            subprocess.run(
                [sys.executable, writer, folder],
                check=True,
                env=cluster.environment(),
                timeout=LIMIT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            found = list(check.check(folder))
            self.assertGreaterEqual(len(found), 14)
            self.assertEqual([pair for pair in found if pair[1]], [])
