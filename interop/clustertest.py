"""The base class of tests: a cluster that the tests of a class share, for each mix of servers."""

import concurrent.futures
import unittest

import tensorflow.compat.v1 as tf

from interop import cluster

tf.logging.set_verbosity(tf.logging.ERROR)
tf.disable_v2_behavior()

# Tasks that TensorFlow serves. Clients connect to worker 0, whose master runs the steps.
MIXES = {
    "weft": {},
    "tf-master": {("worker", 0): cluster.TENSORFLOW},
    "tf-worker": {("worker", 1): cluster.TENSORFLOW},
    "tf-ps": {("ps", 0): cluster.TENSORFLOW},
    "tf": None,  # every task; checks that a test expects what TensorFlow does
}


class ClusterTest(unittest.TestCase):
    """Tests that share one cluster, self.cluster.

    A subclass overrides jobs and cpu_devices for another cluster, and mixes to run its tests on
    several mixes of servers.
    """

    jobs = {"ps": 1, "worker": 2}
    cpu_devices = 1
    task_environment = {}  # variables of the tasks
    mixes = ["weft"]

    mix = "weft"
    server = cluster.WEFT

    @classmethod
    def setUpClass(cls):
        others = MIXES[cls.mix]
        if others is None:
            server, others = cluster.TENSORFLOW, {}
        else:
            server = cls.server
        cls.cluster = cluster.Cluster(
            cls.jobs, server, cls.cpu_devices, others, variables=cls.task_environment
        )
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def setUp(self):
        graph = tf.Graph()
        context = graph.as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def session(self, task=0, **kwargs):
        """Returns a session on the master of a worker. It is closed at the end of the test."""
        sess = tf.Session(self.cluster.target("worker", task), **kwargs)
        self.addCleanup(sess.close)
        return sess

    def assert_raises(self, kind, text, fetches, feed=None, session=None):
        """Asserts that a step fails with an error of the given kind and text."""
        with self.assertRaises(kind) as caught:
            (session or self.session()).run(fetches, feed)
        self.assertIn(text, str(caught.exception))


def run_concurrently(function, count):
    """Runs function(0) to function(count - 1) concurrently and raises the first error."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for done in concurrent.futures.as_completed(
            [pool.submit(function, i) for i in range(count)]
        ):
            done.result()


def on_mix(case, mix):
    """Returns the test class for another mix of servers."""
    return type(f"{case.__name__}[{mix}]", (case,), {"mix": mix, "__module__": case.__module__})
