"""The family "training": models that train in one server process. A case is one step.

The batches are in variables of the server, so that only the step is measured.
"""

import tensorflow.compat.v1 as tf

from bench.kernelcases.registry import FAMILIES


class Training:
    """A model. build maps the number of a batch to the loss and the optimizer."""

    def __init__(self, build):
        self.build = build

    def step(self):
        """Returns the train operation and the initializer."""
        count = tf.get_variable(
            "count", [], tf.int32, tf.zeros_initializer(), trainable=False, use_resource=True
        )
        loss, optimizer = self.build(tf.floormod(count.read_value(), BATCHES))
        train = optimizer.minimize(loss, global_step=count)
        return train, tf.global_variables_initializer()


BATCHES = 4


def data(name, shape, classes):
    """Returns batches of random inputs and labels, in variables."""
    x = tf.get_variable(
        name,
        initializer=tf.random.stateless_uniform([BATCHES, *shape], [1, 2]),
        trainable=False,
        use_resource=True,
    )
    y = tf.get_variable(
        name + "_labels",
        trainable=False,
        use_resource=True,
        initializer=tf.random.stateless_uniform([BATCHES, shape[0]], [3, 4], 0, classes, tf.int32),
    )
    return x, y


def weights(name, shape, fan_in):
    w = tf.get_variable(
        name + "_w",
        shape,
        initializer=tf.truncated_normal_initializer(stddev=fan_in**-0.5, seed=1),
        use_resource=True,
    )
    b = tf.get_variable(
        name + "_b", shape[-1:], initializer=tf.zeros_initializer(), use_resource=True
    )
    return w, b


def dense(name, x, units):
    w, b = weights(name, [int(x.shape[1]), units], int(x.shape[1]))
    return tf.nn.bias_add(tf.matmul(x, w), b)


def cross_entropy(logits, labels):
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(logits=logits, labels=labels)
    )


def perceptron(i):
    """A 784-512-512-10 network, batch 100, Adam."""
    images, labels = data("images", [100, 784], 10)
    x = tf.nn.relu(dense("hidden1", tf.gather(images, i), 512))
    x = tf.nn.relu(dense("hidden2", x, 512))
    return cross_entropy(dense("logits", x, 10), tf.gather(labels, i)), tf.train.AdamOptimizer(1e-3)


def cifar10(i):
    """The network of TensorFlow's CIFAR-10 tutorial.

    Its images are 24x24, with two 5x5x64 convolutions, batch 128.
    """
    images, labels = data("images", [128, 24, 24, 3], 10)

    def convolution(name, x):
        c = int(x.shape[3])
        w, b = weights(name, [5, 5, c, 64], 25 * c)
        return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, [1] * 4, "SAME"), b))

    def pool(x):
        return tf.nn.max_pool(x, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")

    def normalize(x):
        return tf.nn.lrn(x, 4, bias=1.0, alpha=0.001 / 9, beta=0.75)

    x = normalize(pool(convolution("conv1", tf.gather(images, i))))
    x = pool(normalize(convolution("conv2", x)))
    x = tf.reshape(x, [128, 6 * 6 * 64])
    x = tf.nn.relu(dense("local3", x, 384))
    x = tf.nn.relu(dense("local4", x, 192))
    return cross_entropy(
        dense("logits", x, 10), tf.gather(labels, i)
    ), tf.train.GradientDescentOptimizer(0.01)


FAMILIES["training"] = {
    "MLP 784-512-512-10, batch 100": Training(perceptron),
    "CIFAR-10 CNN, batch 128": Training(cifar10),
}
