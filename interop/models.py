"""The network and the data of training tests."""

import numpy as np
import tensorflow.compat.v1 as tf


def digits(n):
    """Returns n noisy patterns of ten classes and their one-hot labels."""
    rng = np.random.RandomState(1)
    patterns, label = rng.rand(10, 784), rng.randint(0, 10, n)
    images = patterns[label] + 0.1 * rng.randn(n, 784)
    return images.astype(np.float32), np.eye(10, dtype=np.float32)[label]


class Network:
    """A small network. The caller's device scope places its variables."""

    def __init__(self, optimizer, use_resource):
        with tf.variable_scope("network", use_resource=use_resource):
            self.x = tf.placeholder(tf.float32, [None, 784])
            self.y = tf.placeholder(tf.float32, [None, 10])
            initializer = tf.truncated_normal_initializer(stddev=0.05, seed=1)
            w1 = tf.get_variable("w1", [784, 32], initializer=initializer)
            b1 = tf.get_variable("b1", [32], initializer=tf.zeros_initializer())
            w2 = tf.get_variable("w2", [32, 10], initializer=initializer)
            b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
        hidden = tf.nn.relu(tf.nn.xw_plus_b(self.x, w1, b1))
        self.logits = tf.nn.xw_plus_b(hidden, w2, b2)
        self.loss = tf.reduce_mean(
            tf.nn.softmax_cross_entropy_with_logits_v2(labels=self.y, logits=self.logits)
        )
        self.step = tf.train.get_or_create_global_step()
        self.train = optimizer.minimize(self.loss, global_step=self.step)

    def feeds(self, data, step, batch):
        """Returns the feeds of a step: the next rows of the data, from the start after the end."""
        first = step * batch % (len(data[0]) - batch + 1)
        return {self.x: data[0][first : first + batch], self.y: data[1][first : first + batch]}
