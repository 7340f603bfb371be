"""Many servers on one machine: the time of a session and of steps with a part on each."""

import statistics
import time

from bench.rows import Group, Row
from interop import cluster

FEW, MANY = 10, 100  # TensorFlow's servers take too much memory for many


def measure(side):
    out = on_servers(side, FEW)
    if side.server != cluster.TENSORFLOW:
        out |= on_servers(side, FEW if side.quick else MANY, MANY)
    return out


def on_servers(side, n, called=None):
    import tensorflow.compat.v1 as tf

    with side.fresh({"worker": n}) as c, tf.Graph().as_default():
        parts = []
        for i in range(n):
            with tf.device(f"/job:worker/task:{i}"):
                parts.append(tf.random_uniform([]) + 1.0)
        with tf.device("/job:worker/task:0"):
            nothing, total = tf.no_op(), tf.add_n(parts)
        with tf.Session(
            c.target("worker", 0), config=tf.ConfigProto(operation_timeout_in_ms=60_000)
        ) as sess:
            created = timed(lambda: sess.run(nothing))
            first = timed(lambda: sess.run(total))
            step = statistics.median(timed(lambda: sess.run(total)) for _ in range(20))
    return dict(zip(names(called or n), (created, first, step)))


def timed(f):
    start = time.perf_counter()
    f()
    return 1e3 * (time.perf_counter() - start)


def names(n):
    return (
        f"{n} servers: making a session",
        f"{n} servers: first step on all",
        f"{n} servers: a step on all",
    )


BOUNDS = dict(zip(names(MANY), (5000, None, 500)))

GROUPS = [
    Group(
        "scale",
        [
            Row(name, "ms", bound=BOUNDS.get(name), headline=n == MANY)
            for n in (FEW, MANY)
            for name in names(n)
        ],
        measure,
        rounds=3,
        limit=120,
    )
]
