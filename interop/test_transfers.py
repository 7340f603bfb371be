"""Tensors of all sizes and types keep every bit on their way between tasks, on any server."""

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest

RING = [
    "/job:ps/task:0",
    "/job:worker/task:1",
    "/job:worker/task:0",
    "/job:worker/task:1",
    "/job:ps/task:0",
]
PLAIN = tf.ConfigProto(
    graph_options=tf.GraphOptions(rewrite_options={"disable_meta_optimizer": True})
)


def around(x):
    """Returns x after it was sent through every task."""
    for device in RING:
        with tf.device(device):
            x = tf.identity(x)
    return x


class Transfers(ClusterTest):
    mixes = ["weft", "tf-master", "tf-worker", "tf-ps"]

    def test_large_tensors_are_unchanged(self):
        rng = np.random.RandomState(0)
        sess = self.session(config=PLAIN)
        for dtype in (tf.float32, tf.float64, tf.int8, tf.bool, tf.complex64, tf.bfloat16):
            x = tf.placeholder(dtype)
            back = around(x)
            for shape in ([3 << 20], [5, 1 << 18, 2], [1 << 16]):
                value = rng.randint(0, 2, shape) if dtype == tf.bool else rng.randn(*shape) * 100
                value = value.astype(dtype.as_numpy_dtype)
                for _ in range(3):
                    got = sess.run(back, {x: value})
                    self.assertEqual(got.shape, value.shape)
                    self.assertEqual(got.tobytes(), value.tobytes(), dtype)

    def test_many_tensors_of_one_step(self):
        sizes = [1, 1000, 100_000, 1_000_000]
        xs = [
            tf.fill([sizes[i % 4]], tf.placeholder(tf.float32, [], name=f"x{i}")) for i in range(60)
        ]
        sums = [tf.reduce_max(around(x)) for x in xs]
        sess = self.session(config=PLAIN)
        for step in range(3):
            got = sess.run(sums, {f"x{i}:0": i + step for i in range(60)})
            self.assertEqual(got, [float(i + step) for i in range(60)])

    def test_a_large_tensor_that_is_dead(self):
        x = tf.placeholder(tf.float32)
        with tf.device("/job:ps/task:0"):
            dead, alive = tf.raw_ops.Switch(data=x, pred=tf.constant(True))
        merged = tf.raw_ops.Merge(inputs=[around(dead), around(alive)])
        sess = self.session(config=PLAIN)
        value = np.arange(1 << 20, dtype=np.float32)
        for _ in range(3):
            got, index = sess.run([merged.output, merged.value_index], {x: value})
            self.assertEqual(index, 1)
            np.testing.assert_array_equal(got, value)
