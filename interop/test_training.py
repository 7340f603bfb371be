"""Training on a cluster has the same losses as in one process."""

import threading

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest, run_concurrently
from interop.models import Network, digits

STEPS, BATCH = 30, 20


def losses_of(network, sess, data, steps=STEPS):
    """Trains and returns the loss before each step."""
    return [
        sess.run([network.loss, network.train], network.feeds(data, i, BATCH))[0]
        for i in range(steps)
    ]


class Training(ClusterTest):
    mixes = ["weft", "tf-master", "tf-ps"]

    def check(self, optimizer, use_resource=False):
        data = digits(STEPS * BATCH)
        with tf.Graph().as_default(), tf.Session() as local:
            network = Network(optimizer(), use_resource)
            local.run(tf.global_variables_initializer())
            want = losses_of(network, local, data)
        with tf.Graph().as_default() as g:
            with (
                g.container(self._testMethodName.replace("_", ".")),
                tf.device(tf.train.replica_device_setter(1)),
            ):
                network = Network(optimizer(), use_resource)
            with tf.Session(self.cluster.target()) as remote:
                remote.run(tf.global_variables_initializer())
                got = losses_of(network, remote, data)
                self.assertEqual(remote.run(network.step), STEPS)
        self.assertLess(want[-1], want[0] / 2)
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-4)

    def test_gradient_descent(self):
        self.check(lambda: tf.train.GradientDescentOptimizer(0.1))

    def test_momentum(self):
        self.check(lambda: tf.train.MomentumOptimizer(0.02, 0.9))

    def test_adagrad(self):
        self.check(lambda: tf.train.AdagradOptimizer(0.05))

    def test_adam(self):
        self.check(lambda: tf.train.AdamOptimizer(0.002))

    def test_adam_with_resource_variables(self):
        self.check(lambda: tf.train.AdamOptimizer(0.002), use_resource=True)

    def test_two_workers_share_what_they_learn(self):
        data = digits(STEPS * BATCH)
        ready, losses = threading.Event(), {}

        def client(i):
            with tf.Graph().as_default() as g:
                with (
                    g.container("two.workers"),
                    tf.device(
                        tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{i}")
                    ),
                ):
                    network = Network(tf.train.GradientDescentOptimizer(0.05), use_resource=False)
                with tf.Session(self.cluster.target("worker", i)) as sess:
                    if i == 0:
                        try:
                            sess.run(tf.global_variables_initializer())
                            losses["first"] = sess.run(
                                network.loss, {network.x: data[0], network.y: data[1]}
                            )
                        finally:
                            ready.set()
                    ready.wait()
                    losses[i] = losses_of(network, sess, data)
                    losses["step", i] = sess.run(network.step)

        run_concurrently(client, 2)
        self.assertEqual(max(losses["step", 0], losses["step", 1]), 2 * STEPS)
        self.assertLess(
            min(losses[0][-1], losses[1][-1]), losses["first"] / 2
        )  # the last worker to finish
