"""The graphs of graphs.py have the same results on a cluster as in a session in this process."""

import itertools

import numpy as np
import tensorflow.compat.v1 as tf

from interop import graphs
from interop.clustertest import ClusterTest


class Answers(ClusterTest):
    """The placer chooses the devices."""

    jobs = {"worker": 1}

    def place(self):
        return tf.device(None)

    def check(self, build):
        with tf.Graph().as_default():
            fetches, feed = build()
            with tf.Session() as local:
                want = local.run(fetches, feed)
        with tf.Graph().as_default(), self.place():
            fetches, feed = build()
            with tf.Session(self.cluster.target()) as remote:
                got = remote.run(fetches, feed)
        for fetch, a, b in zip(fetches, got, want):
            if isinstance(b, bytes) or b.dtype.kind in "Obiu":
                np.testing.assert_array_equal(a, b, fetch.name)
            else:
                self.assertEqual((a.dtype, a.shape), (b.dtype, b.shape), fetch.name)
                # Sums of large terms that cancel are only as accurate as their terms, so the tolerance
                # depends on the largest element.
                largest = float(np.max(np.abs(b), initial=1.0))
                np.testing.assert_allclose(
                    a, b, rtol=1e-5, atol=1e-6 * largest + 1e-5, err_msg=fetch.name
                )


class ScatteredAnswers(Answers):
    """Consecutive operations are on different tasks, so that almost every tensor is sent."""

    jobs = {"ps": 1, "worker": 2}
    mixes = ["weft", "tf-master", "tf-worker", "tf-ps"]

    def place(self):
        tasks = itertools.cycle(["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"])
        return tf.device(lambda op: next(tasks))


class OptimizedAnswers(Answers):
    """A master of TensorFlow with oneDNN optimizes the graph and sends it to a task of Weft."""

    jobs = {"worker": 2}
    task_environment = {"TF_ENABLE_ONEDNN_OPTS": "1"}
    mixes = ["tf-master"]

    def place(self):
        return tf.device("/job:worker/task:1/device:CPU:0")


def add_test(build):
    setattr(Answers, f"test_{build.__name__}", lambda self: self.check(build))


for graph in graphs.GRAPHS:
    add_test(graph)
