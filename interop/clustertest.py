"""What cases are built from: a test class whose tests share a cluster, once for each mix of servers."""
import concurrent.futures
import unittest

import tensorflow.compat.v1 as tf

from interop import cluster

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()

# Who serves which task. Clients connect to worker 0, whose master then drives the step.
MIXES = {
    "weft": {},
    "tf-master": {("worker", 0): cluster.TENSORFLOW},
    "tf-worker": {("worker", 1): cluster.TENSORFLOW},
    "tf-ps": {("ps", 0): cluster.TENSORFLOW},
    "tf": None,  # every task: shows that a case asks for what TensorFlow does
}


class ClusterTest(unittest.TestCase):
    """Tests that run against one cluster, which they find as self.cluster.

    A subclass says what it needs in these attributes; `weft` runs its tests again for each of its mixes.
    """

    jobs = {"ps": 1, "worker": 2}
    cpu_devices = 1
    mixes = ["weft"]

    mix = "weft"
    server = cluster.WEFT

    @classmethod
    def setUpClass(cls):
        others = MIXES[cls.mix]
        if others is None:
            cls.cluster = cluster.Cluster(cls.jobs, cluster.TENSORFLOW, cls.cpu_devices)
        else:
            cls.cluster = cluster.Cluster(cls.jobs, cls.server, cls.cpu_devices, others)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        graph = tf.Graph()
        context = graph.as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def session(self, task=0, **kwargs):
        """A session on the master of a worker, closed when the test ends."""
        sess = tf.Session(self.cluster.target("worker", task), **kwargs)
        self.addCleanup(sess.close)
        return sess

    def assert_raises(self, kind, text, fetches, feed=None, session=None):
        """Checks that a step fails with an error of that kind, with the text in its message."""
        with self.assertRaises(kind) as caught:
            (session or self.session()).run(fetches, feed)
        self.assertIn(text, str(caught.exception))


def run_at_once(function, count):
    """Runs function(0) to function(count - 1) in threads of their own, waits, and raises the first error."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for done in concurrent.futures.as_completed([pool.submit(function, i) for i in range(count)]):
            done.result()


def on_mix(case, mix):
    """The same test class on another mix of servers."""
    return type(f"{case.__name__}[{mix}]", (case,), {"mix": mix, "__module__": case.__module__})
