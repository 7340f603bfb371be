"""remote.py CLUSTER: operations, functions and variables of TensorFlow 2 on other tasks.

CLUSTER is JSON, {"ps": ["host:port"], "worker": [...]}, with two workers. Prints "ok" at the end.
"""

import json
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

PS, WORKER0, WORKER1 = "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"


def check(what, got, want):
    if not np.allclose(got, want):
        raise SystemExit(f"{what}: got {got}, want {want}")


def operations():
    with tf.device(WORKER0):
        a = tf.constant([[1.0, 2.0], [3.0, 4.0]])
        b = tf.matmul(a, a)
    with tf.device(WORKER1):
        c = b + 1.0  # b comes from the other worker
    if "/job:worker/replica:0/task:1" not in c.device:
        raise SystemExit(f"the sum is on {c.device}")
    check("operations", c.numpy(), [[8.0, 11.0], [16.0, 23.0]])
    try:
        with tf.device(WORKER0):
            tf.matmul(a, tf.ones([3, 3]))
    except tf.errors.InvalidArgumentError:
        return
    raise SystemExit("a product of shapes that do not match has no error")


def variables():
    with tf.device(PS):
        v = tf.Variable([1.0, 2.0])
    with tf.device(WORKER0):
        v.assign_add([1.0, 1.0])
    with tf.device(WORKER1), tf.GradientTape() as tape:
        loss = tf.reduce_sum(v * v)
    check("a gradient", tape.gradient(loss, v).numpy(), [4.0, 6.0])


def functions():
    with tf.device(PS):
        v = tf.Variable(2.0)

    @tf.function
    def across(x):
        with tf.device(WORKER0):
            y = x * v
        with tf.device(WORKER1):
            z = tf.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + y), [0, 0.0])[1]
        with tf.device(PS):
            v.assign_add(z)
        return z

    check("a function", across(tf.constant(3.0)).numpy(), 30.0)
    check("its variable", v.numpy(), 32.0)
    check("a second call", across(tf.constant(1.0)).numpy(), 160.0)


def datasets():
    with tf.device(WORKER0):
        batches = iter(tf.data.Dataset.range(10).map(lambda x: x * x).batch(4))
        sums = [tf.reduce_sum(batch).numpy() for batch in batches]
    check("batches", sums, [14, 126, 145])


def main():
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(json.loads(sys.argv[1])))
    for part in (operations, variables, functions, datasets):
        part()
    print("ok")


if __name__ == "__main__":
    main()
