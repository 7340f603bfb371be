"""Programs of TensorFlow 2, each in a process of its own: the clients of this process are of 1.x."""

import json
import os
import re
import subprocess
import sys

from interop import cluster
from interop.clustertest import ClusterTest

PROGRAMS = cluster.ROOT / "interop" / "tf2"
EXAMPLES = cluster.ROOT / "examples" / "python" / "tf2"
LIMIT = 200  # seconds for one program


def run(command, folder):
    """Returns the output of a command, and fails if it fails."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=dict(os.environ, **cluster.QUIET),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stdout[-3000:]}")
    return done.stdout


class Remote(ClusterTest):
    mixes = ["weft", "tf-worker", "tf-ps", "tf"]

    def test_remote(self):
        out = run([sys.executable, "remote.py", json.dumps(self.cluster.spec)], PROGRAMS)
        self.assertEqual(out.splitlines()[-1], "ok")


class Examples(ClusterTest):
    """The programs of examples/python/tf2, as users start them."""

    jobs = {}

    def launch(self, program):
        command = [cluster.BINARY, "launch", "--layout=coordinator", "--ps=2", "--workers=2", "--"]
        out = run([*command, sys.executable, program], EXAMPLES)
        return float(re.findall(r"test accuracy ([0-9.]+)", out)[-1])

    def test_parameter_server(self):
        self.assertGreater(self.launch("parameter_server.py"), 0.95)

    def test_keras_fit(self):
        self.assertGreater(self.launch("keras_fit.py"), 0.95)
