"""Training on a cluster has the same losses as in one process."""
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest, run_concurrently

STEPS, BATCH = 30, 20


def digits(n):
    rng = np.random.RandomState(1)
    patterns, label = rng.rand(10, 784), rng.randint(0, 10, n)
    return (patterns[label] + 0.1 * rng.randn(n, 784)).astype(np.float32), np.eye(10, dtype=np.float32)[label]


class Network:
    """A small network. The caller's device scope places its variables."""

    def __init__(self, optimizer, use_resource):
        with tf.variable_scope("network", use_resource=use_resource):
            self.x, self.y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
            initializer = tf.truncated_normal_initializer(stddev=0.05, seed=1)
            w1 = tf.get_variable("w1", [784, 32], initializer=initializer)
            b1 = tf.get_variable("b1", [32], initializer=tf.zeros_initializer())
            w2 = tf.get_variable("w2", [32, 10], initializer=initializer)
            b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(self.x, w1, b1)), w2, b2)
        self.loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=self.y, logits=logits))
        self.step = tf.train.get_or_create_global_step()
        self.train = optimizer.minimize(self.loss, global_step=self.step)

    def losses(self, sess, data, steps=STEPS):
        out = []
        for i in range(steps):
            rows = slice(i * BATCH, (i + 1) * BATCH)
            out.append(sess.run([self.loss, self.train], {self.x: data[0][rows], self.y: data[1][rows]})[0])
        return out


class Training(ClusterTest):
    mixes = ["weft", "tf-master", "tf-ps"]

    def check(self, optimizer, use_resource=False):
        data = digits(STEPS * BATCH)
        with tf.Graph().as_default(), tf.Session() as local:
            network = Network(optimizer(), use_resource)
            local.run(tf.global_variables_initializer())
            want = network.losses(local, data)
        with tf.Graph().as_default() as g:
            with g.container(self._testMethodName.replace("_", ".")), tf.device(tf.train.replica_device_setter(1)):
                network = Network(optimizer(), use_resource)
            with tf.Session(self.cluster.target()) as remote:
                remote.run(tf.global_variables_initializer())
                got = network.losses(remote, data)
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
                with g.container("two.workers"), tf.device(tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{i}")):
                    network = Network(tf.train.GradientDescentOptimizer(0.05), use_resource=False)
                with tf.Session(self.cluster.target("worker", i)) as sess:
                    if i == 0:
                        try:
                            sess.run(tf.global_variables_initializer())
                            losses["first"] = sess.run(network.loss, {network.x: data[0], network.y: data[1]})
                        finally:
                            ready.set()
                    ready.wait()
                    losses[i] = network.losses(sess, data)
                    losses["step", i] = sess.run(network.step)

        run_concurrently(client, 2)
        self.assertEqual(max(losses["step", 0], losses["step", 1]), 2 * STEPS)
        self.assertLess(min(losses[0][-1], losses[1][-1]), losses["first"] / 2)  # the last worker to finish
