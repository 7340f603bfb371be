"""The time per node in the executor.

Each graph is one step of thousands of nodes, on a server of its own. The time of an empty step is
subtracted. The first steps, in which the servers learn the cost of nodes, are not timed. Graph
rewriting is off on both sides, and every node works on one number, so that the executor dominates.
"""

import os
import time

from bench.rows import Group, Row
from bench.steps import best, plain

GRAPHS = {}  # name: (number of nodes, build); build maps a scalar placeholder to the fetch

WORK = 100  # size of square matrices whose product takes about 10 µs


def graph(nodes):
    def add(build):
        GRAPHS[build.__name__.replace("_", " ")] = nodes, build
        return build

    return add


@graph(10_000)
def chain(tf, x):
    for _ in range(10_000):
        x = tf.raw_ops.AddV2(x=x, y=x)
    return x


@graph(50 * 200)
def fifty_chains(tf, x):
    ends = [x] * 50
    for _ in range(200):
        ends = [tf.raw_ops.AddV2(x=end, y=end) for end in ends]
    return tf.group(*ends)


@graph(2 * 4096)
def tree(tf, x):
    level = [tf.raw_ops.Neg(x=x) for _ in range(4096)]
    while len(level) > 1:
        level = [tf.raw_ops.AddV2(x=a, y=b) for a, b in zip(level[::2], level[1::2])]
    return level[0]


@graph(100_000)
def loop_of_100000_iterations(tf, x):
    return tf.while_loop(lambda i: i < 100_000.0, lambda i: i + 1.0, [x])


@graph(50 * 20)
def wide_graph_of_10_us_kernels(tf, x):
    ends = [tf.fill([WORK, WORK], x) for _ in range(50)]
    for _ in range(20):
        ends = [tf.raw_ops.MatMul(a=end, b=end) for end in ends]
    return tf.group(*ends)


WARM = 5  # warm-up steps

LARGE = 20_000  # number of nodes of the graph whose first step is timed


def nodes(side):
    """Returns the time per node of every graph."""
    import tensorflow.compat.v1 as tf

    c = side.cluster({"local": 1})
    return {
        f"executor, {name}": 1e9 * net_time(tf, c, build) / count
        for name, (count, build) in GRAPHS.items()
    }


def net_time(tf, c, build):
    """Returns the time of a graph's step minus that of an empty step."""
    with tf.Graph().as_default(), tf.Session(c.target("local"), config=plain(tf)) as s:
        x = tf.placeholder(tf.float32, [])
        many, nothing = build(tf, x), tf.group(x)
        times = []
        for fetch in many, nothing:
            step = lambda: s.run(fetch, {x: 0.0})
            for _ in range(WARM):
                step()
            times.append(best(step, 5))
        return times[0] - times[1]


def two_cores(side):
    """Returns the speedup of the wide graph on two cores over one."""
    import tensorflow.compat.v1 as tf

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        return {}
    times = []
    for n in 1, 2:
        os.sched_setaffinity(
            0, cores[:n]
        )  # inherited by the server, which uses one thread per core
        try:
            c = side.fresh({"local": 1}).__enter__()
        finally:
            os.sched_setaffinity(0, cores)
        with c:
            times.append(net_time(tf, c, GRAPHS["wide graph of 10 us kernels"][1]))
    return {"executor, two cores by one": times[0] / times[1]}


def large_graph(side):
    """Measures the first step of a large graph on a new server, and the memory of its session."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default(), side.fresh({"local": 1}) as c:
        x = tf.placeholder(tf.float32, [])
        y = x
        for _ in range(LARGE):
            y = tf.raw_ops.AddV2(x=y, y=y)
        with tf.Session(c.target("local"), config=plain(tf)) as sess:
            before = c.resident_mib()["local", 0]
            start = time.perf_counter()
            sess.run(y, {x: 0.0})
            took = time.perf_counter() - start
            return {
                f"session and first step of {LARGE} nodes": 1e3 * took,
                f"memory of {LARGE} nodes": c.resident_mib()["local", 0] - before,
            }


GROUPS = [
    Group(
        "executor",
        [
            Row(
                f"executor, {name}",
                "ns/node",
                aim=None if name.startswith("wide") else 2,
                headline=name in ("chain", "loop of 100000 iterations"),
            )
            for name in GRAPHS
        ],
        nodes,
        rounds=3,
        limit=120,
    ),
    Group(
        "two cores",
        [Row("executor, two cores by one", "times", "higher", bound=1.7)],
        two_cores,
        rounds=3,
    ),
    Group(
        "large graph",
        [
            Row(f"session and first step of {LARGE} nodes", "ms"),
            Row(f"memory of {LARGE} nodes", "MiB"),
        ],
        large_graph,
        rounds=3,
    ),
]
