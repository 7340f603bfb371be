"""The Go client, in the programs of examples/, on every mix of servers."""

import os
import subprocess

from interop.clustertest import ClusterTest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class GoClient(ClusterTest):
    jobs = {"ps": 2, "worker": 2}
    cpu_devices = 2
    mixes = ["weft", "tf-master", "tf-worker", "tf-ps", "tf"]

    def go(self, example, *flags):
        """Runs an example with worker 0 and returns its output."""
        done = subprocess.run(
            [
                "go",
                "run",
                "./examples/" + example,
                "--target=" + self.cluster.target("worker", 0),
                *flags,
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=500,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_hello(self):
        self.assertIn("Hello, distributed TensorFlow!", self.go("hello"))

    def test_matmul(self):
        self.assertIn("[[22 28] [49 64]]", self.go("matmul", "--device=/job:ps/task:1/cpu:1"))

    def test_a_plus_b(self):
        self.assertIn("2", self.go("aplusb").split())

    def test_in_graph_async(self):
        self.assertIn("accuracy", self.go("ingraph", "--mode=async", "--steps=100"))

    def test_in_graph_sync(self):
        self.assertIn("accuracy", self.go("ingraph", "--mode=sync", "--steps=100"))
