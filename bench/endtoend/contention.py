"""The latency of small steps while another session keeps the same task busy."""

import os
import threading
import time

from bench.rows import Group, Row
from bench.steps import plain

STEPS = 1000
SECONDS = 10  # limit for all steps, because a step takes 0.2 s next to some loads
ALONE = "alone"


def products(tf):
    """Returns products of large matrices, which use all cores."""
    x = y = tf.fill([1024, 1024], 1e-3)
    for _ in range(20):
        y = tf.raw_ops.MatMul(a=y, b=x)
    return tf.group(y)


def counting(tf):
    """Returns a loop of small nodes."""
    return tf.group(tf.while_loop(lambda i: i < 200_000.0, lambda i: i + 1.0, [tf.constant(0.0)]))


LOADS = {"products": products, "a loop": counting}


class Load:
    """A session that runs steps in sequence until the with block ends."""

    def __init__(self, tf, target, build):
        self.tf, self.target, self.build = tf, target, build
        self.stop = threading.Event()
        self.busy = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        with self.tf.Graph().as_default(), self.tf.Session(self.target, config=plain(self.tf)) as s:
            fetch = self.build(self.tf)
            s.run(fetch)
            self.busy.set()
            while not self.stop.is_set():
                s.run(fetch)

    def __enter__(self):
        self.thread.start()
        self.busy.wait()

    def __exit__(self, *exc):
        self.stop.set()
        self.thread.join()


def times(tf, target, steps):
    """Returns the median and the 99th percentile of the times of small steps, in µs."""
    with tf.Graph().as_default(), tf.Session(target, config=plain(tf)) as s:
        x = tf.placeholder(tf.float32, [])
        step = s.make_callable(x + 1.0, [x])
        took = []
        end = time.perf_counter() + SECONDS
        while len(took) < steps + steps // 10 and time.perf_counter() < end:
            start = time.perf_counter()
            step(0.0)
            took.append(time.perf_counter() - start)
        took = sorted(took[len(took) // 10 :])
        return 1e6 * took[len(took) // 2], 1e6 * took[len(took) * 99 // 100]


def measure(side, cores):
    import tensorflow.compat.v1 as tf

    all_cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, all_cores[:cores])  # inherited by the server
    try:
        c = side.fresh({"local": 1}).__enter__()
    finally:
        os.sched_setaffinity(0, all_cores)
    values = {}
    with c:
        target = c.target("local")

        def record(load):
            for what, value in zip(PERCENTILES, times(tf, target, side.count(STEPS))):
                values[name(cores, load, what)] = value

        record(ALONE)
        for load, build in LOADS.items():
            with Load(tf, target, build):
                record(load)
    for load in LOADS:
        for what in PERCENTILES:
            values[delay(cores, load, what)] = (
                values[name(cores, load, what)] / values[name(cores, ALONE, what)]
            )
    return values


PERCENTILES = "median", "99th percentile"


def where(cores):
    return "one core" if cores == 1 else f"{cores} cores"


def name(cores, load, what):
    return f"small step on {where(cores)}, {load if load == ALONE else 'beside ' + load}: {what}"


def delay(cores, load, what):
    return f"small step on {where(cores)}, beside {load} by alone: {what}"


def group(cores):
    rows = [Row(name(cores, load, what), "µs") for load in (ALONE, *LOADS) for what in PERCENTILES]
    rows += [
        Row(delay(cores, load, what), "times", bound=2) for load in LOADS for what in PERCENTILES
    ]
    return Group("contention on " + where(cores), rows, lambda side: measure(side, cores), rounds=3)


GROUPS = [group(cores) for cores in (2, 1) if len(os.sched_getaffinity(0)) >= cores]
