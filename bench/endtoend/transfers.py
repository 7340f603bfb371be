"""The throughput of tensor transfers between tasks and with clients, and their server CPU time."""

import contextlib
import statistics
import time

from bench.rows import Group, Row
from interop.cluster import cpu_seconds

SIZES = {"1 MiB": 2**20, "16 MiB": 2**24, "100 MiB": 100 * 2**20, "1 GiB": 2**30}
MANY = 100  # number of small variables read in one step
FED = 100_000_000  # size of a feed or fetch, in bytes
MIN_SECONDS = 0.7  # shortest measurement of a case


def tasks(side):
    """A worker receives a whole variable from another task and uses one element."""
    import tensorflow.compat.v1 as tf

    values = {}
    c = side.cluster({"ps": 1, "worker": 1})
    for name, size in SIZES.items():
        with session(c) as sess:
            with tf.device("/job:ps/task:0"):
                v = tf.get_variable(
                    "v", [size // 4], initializer=tf.ones_initializer(), use_resource=False
                )
            with tf.device("/job:worker/task:0"):
                one = tf.slice(tf.identity(v), [5], [1])
            sess.run(v.initializer)
            seconds, cpu = timed(c, sess.make_callable(one))
        values[f"{name} from task to task"] = size / 1e9 / seconds
        values[f"{name} from task to task, CPU of servers"] = cpu / (size / 1e9)
    return values


def many(side):
    """A worker reads many small variables of another task in one step."""
    import tensorflow.compat.v1 as tf

    c = side.cluster({"ps": 1, "worker": 1})
    with session(c) as sess:
        with tf.device("/job:ps/task:0"):
            vs = [
                tf.get_variable(
                    f"v{i}", [64], initializer=tf.ones_initializer(), use_resource=False
                )
                for i in range(MANY)
            ]
        with tf.device("/job:worker/task:0"):
            reads = tf.group(*[tf.identity(v) for v in vs])
        sess.run([v.initializer for v in vs])
        seconds, cpu = timed(c, sess.make_callable(reads))
    name = f"{MANY} small variables from task to task"
    return {name: 1 / seconds, f"{name}, CPU of servers": 1e3 * cpu}


def clients(side):
    """A client feeds an array and fetches one element; a client fetches a whole variable."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    c = side.cluster({"worker": 1})
    array = np.ones(FED // 4, np.float32)
    with session(c) as sess:
        x = tf.placeholder(tf.float32, [FED // 4])
        feed = sess.make_callable(tf.slice(x, [5], [1]), [x])
        v = tf.get_variable("v", initializer=tf.ones(FED // 4), use_resource=False)
        sess.run(v.initializer)
        values = {}
        for what, call in ("feed", lambda: feed(array)), ("fetch", sess.make_callable(v)):
            seconds, cpu = timed(c, call)
            values[f"{what} of 100 MB"] = 1e3 * seconds
            values[f"{what} of 100 MB, CPU of server"] = cpu / (FED / 1e9)
    return values


@contextlib.contextmanager
def session(c):
    """Yields a session on the worker, with a graph of its own and no rewriting.

    Its variables are deleted at the end.
    """
    import tensorflow.compat.v1 as tf

    plain = tf.ConfigProto(
        graph_options=tf.GraphOptions(rewrite_options={"disable_meta_optimizer": True})
    )
    with tf.Graph().as_default(), tf.Session(c.target("worker"), config=plain) as sess:
        yield sess
    tf.Session.reset(c.target("worker"))


def timed(c, step):
    """Returns the median time of a step and its mean server CPU time, in seconds."""
    for _ in range(5):
        step()
    times = []
    before, end = cpu_seconds(c), time.perf_counter() + MIN_SECONDS
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return statistics.median(times), (cpu_seconds(c) - before) / len(times)


GROUPS = [
    Group(
        "transfers",
        [
            row
            for name in SIZES
            for row in (
                Row(f"{name} from task to task", "GB/s", "higher", aim=3),
                Row(f"{name} from task to task, CPU of servers", "s/GB", aim=3),
            )
        ],
        tasks,
        limit=180,
    ),
    Group(
        "small tensors",
        [
            Row(f"{MANY} small variables from task to task", "steps/s", "higher"),
            Row(f"{MANY} small variables from task to task, CPU of servers", "ms/step"),
        ],
        many,
    ),
    Group(
        "feeds and fetches",
        [
            row
            for what in ("feed", "fetch")
            for row in (
                Row(f"{what} of 100 MB", "ms", aim=1.5),
                Row(f"{what} of 100 MB, CPU of server", "s/GB"),
            )
        ],
        clients,
    ),
]
