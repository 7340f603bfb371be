"""What is measured on one cluster. Every function returns {measure: value}."""
import importlib.util
import pathlib
import statistics
import time

import numpy as np
import tensorflow.compat.v1 as tf

from bench import clients
from interop import cluster

# measure: (unit, whether less is better)
MEASURES = {
    "session.run of a constant": ("µs", True),
    "callable of a constant": ("µs", True),
    "session.run with a 100x784 feed": ("µs", True),
    "session.run across two tasks": ("µs", True),
    "16 MiB from task to task": ("ms", True),
    "100 MiB from task to task": ("ms", True),
    "MLP training, 100 hidden": ("steps/s", False),
    "MLP training, 512 hidden": ("steps/s", False),
    "exec to first step": ("ms", True),
    "resident memory, idle": ("MiB", True),
    "resident memory, worker after training": ("MiB", True),
    "resident memory, ps after training": ("MiB", True),
    "program on disk": ("MiB", True),
}


def one_cluster(server, training, steps):
    """Everything that one side is measured for in one alternation. Steps is the number of timed steps per measure."""
    values = first_step(server)
    with cluster.Cluster({"ps": 1, "worker": 2}, server) as c:
        values["resident memory, idle"] = statistics.median(c.resident_mib().values())
        values |= latencies(c, steps)
        values |= transfers(c, steps)
        for hidden in clients.HIDDEN:
            values[f"MLP training, {hidden} hidden"] = training.train(c, hidden, steps if hidden < 500 else steps // 2)
        resident = c.resident_mib()
        values["resident memory, worker after training"] = resident["worker", 1]
        values["resident memory, ps after training"] = resident["ps", 0]
    return values


def first_step(server):
    """From starting the process of a one-task cluster to the answer of the first step, with a client that is ready."""
    with tf.Graph().as_default():
        hello = tf.constant("hello")
        c = cluster.Cluster({"local": 1}, server)
        start = time.monotonic()
        with c, tf.Session(c.target("local")) as sess:
            sess.run(hello)
            return {"exec to first step": 1e3 * (time.monotonic() - start)}


def latencies(c, steps):
    """The median time of a step as a Python client sees it, for steps that do next to nothing."""
    with tf.Graph().as_default():
        constant = tf.constant(1.0)
        batch = tf.placeholder(tf.float32, [None, 784])
        mean = tf.reduce_mean(batch)
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            there = x + 1.0
        with tf.device("/job:worker/task:0"):
            back = there * 2.0
        images = np.random.RandomState(0).rand(100, 784).astype(np.float32)
        with tf.Session(c.target("worker", 0)) as sess:
            call = sess.make_callable(constant)
            return {
                "session.run of a constant": median_us(lambda: sess.run(constant), steps),
                "callable of a constant": median_us(call, steps),
                "session.run with a 100x784 feed": median_us(lambda: sess.run(mean, {batch: images}), steps),
                "session.run across two tasks": median_us(lambda: sess.run(back, {x: 1.0}), steps),
            }


def transfers(c, steps):
    """The median time of a step in which a worker takes one element of a variable that it gets whole from another task."""
    whole = tf.GraphOptions(rewrite_options={"disable_meta_optimizer": True})
    values = {}
    for mib in (16, 100):
        with tf.Graph().as_default():
            with tf.device("/job:ps/task:0"):
                v = tf.get_variable(f"mib_{mib}", [mib * 2**18], initializer=tf.zeros_initializer(), use_resource=False)
            with tf.device("/job:worker/task:0"):
                one = tf.slice(tf.identity(v), [5], [1])
            with tf.Session(c.target("worker", 0), config=tf.ConfigProto(graph_options=whole)) as sess:
                sess.run(v.initializer)
                values[f"{mib} MiB from task to task"] = median_us(sess.make_callable(one), max(3, steps // mib)) / 1e3
    tf.Session.reset(c.target("worker", 0))
    return values


def median_us(step, count):
    for _ in range(count // 10 + 5):
        step()
    times = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def size_on_disk(server):
    """The program a task needs: one binary, or TensorFlow's shared libraries."""
    if server == cluster.TENSORFLOW:
        package = pathlib.Path(importlib.util.find_spec("tensorflow").origin).parent
        size = sum(f.stat().st_size for f in package.rglob("*.so*") if not f.is_symlink())
    else:
        size = pathlib.Path(server.split()[0].strip("'")).stat().st_size
    return {"program on disk": size / 2**20}
