"""Trains the networks of training.go with TensorFlow and prints the time of a step in µs.

The arguments are the number of the GPU and the number of steps. WEFT_REPORT_CPU=1 lets it run
without a GPU.
"""

import os
import sys
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_eager_execution()
number, steps = int(sys.argv[1]), int(sys.argv[2])
device = f"/gpu:{number}"
if os.environ.get("WEFT_REPORT_CPU"):
    device = "/cpu:0"
elif len(tf.config.list_physical_devices("GPU")) <= number:
    sys.exit(f"TensorFlow {tf.__version__} sees no GPU {number}")

variables = 0


def variable(shape, deviation, trainable=True):
    global variables
    i = np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(variables * 7919)
    i *= np.uint32(2654435761)
    i ^= i >> np.uint32(15)
    i *= np.uint32(2246822519)
    values = (i / 2.0**32 - 0.5) * 12**0.5 * deviation
    variables += 1
    return tf.get_variable(
        f"v{variables}",
        initializer=values.astype(np.float32).reshape(shape),
        trainable=trainable,
        use_resource=True,
    )


def dense(x, n_in, n_out):
    w, b = variable([n_in, n_out], (2 / n_in) ** 0.5), variable([n_out], 0)
    return tf.nn.bias_add(tf.matmul(x, w), b)


def convolution(x, n_in, n_out):
    w, b = variable([5, 5, n_in, n_out], (2 / (25 * n_in)) ** 0.5), variable([n_out], 0)
    return tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, w, 1, "SAME"), b))


def pool(x):
    return tf.nn.max_pool2d(x, 3, 2, "SAME")


def normalize(x):
    return tf.nn.lrn(x, 4, 1, 0.001 / 9, 0.75)


def perceptron(x):
    x = tf.nn.relu(dense(x, 784, 1024))
    x = tf.nn.relu(dense(x, 1024, 1024))
    return dense(x, 1024, 10)


def cifar10(x):
    x = normalize(pool(convolution(x, 3, 64)))
    x = pool(normalize(convolution(x, 64, 64)))
    x = tf.reshape(x, [-1, 8 * 8 * 64])
    x = tf.nn.relu(dense(x, 8 * 8 * 64, 384))
    x = tf.nn.relu(dense(x, 384, 192))
    return dense(x, 192, 10)


for name, shape, logits in [
    ("perceptron 784-1024-1024-10, batch 128", [128, 784], perceptron),
    ("CIFAR-10 network, batch 128", [128, 32, 32, 3], cifar10),
]:
    tf.reset_default_graph()
    variables = 0
    with tf.device(device):
        x = variable(shape, 0.5, trainable=False)
        labels = np.arange(shape[0], dtype=np.int64) ** 2 % 10
        y = tf.get_variable("labels", initializer=labels, trainable=False, use_resource=True)
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x))
        )
        step = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first = [session.run([loss, step])[0] for _ in range(10)]
        print("losses of " + name, *first, file=sys.stderr)
        run = session.make_callable(step)
        start = time.perf_counter()
        for _ in range(steps):
            run()
        session.run([loss, step])
        took = (time.perf_counter() - start) / (steps + 1)
    print(f"TensorFlow {tf.__version__}, training step, {name}\t{took * 1e6:.2f}")
