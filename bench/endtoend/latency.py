"""The latency of steps with almost no computation, for one client and for many."""

import json
import pathlib
import subprocess
import threading
import time

from bench.endtoend import nullserver
from bench.rows import Group, Row
from interop import cluster

JOBS = {"ps": 1, "worker": 2}
CALLS = 300  # calls of one client per kind of step
MANY = {1: CALLS, 8: 100, 64: 30}  # calls of each client, by number of clients
PROCESSES = 4  # processes that the Python clients are divided over
GO = pathlib.Path(cluster.BINARY).with_name("bench-client")

STEPS = {
    "constant": "a constant",
    "callable": "a callable of a constant",
    "feed": "a 100x784 feed",
    "one hop": "one hop to another task",
    "three hops": "three hops",
}


def graph(tf, kind):
    """Returns the fetch and the feeds of a kind of step.

    A hop is a tensor sent from task to task. The first task is worker 0.
    """
    import numpy as np

    def on(task, x):
        with tf.device(task):
            return x + 1.0

    with tf.device("/job:worker/task:0"):
        if kind in ("constant", "callable"):
            return tf.constant(1.0), {}
        if kind == "feed":
            batch = tf.placeholder(tf.float32, [None, 784])
            return tf.reduce_mean(batch), {
                batch: np.random.RandomState(0).rand(100, 784).astype(np.float32)
            }
    with tf.device("/job:ps/task:0"):
        x = tf.random_uniform([])
    if kind == "three hops":
        x = on("/job:ps/task:0", on("/job:worker/task:1", x))
    return on("/job:worker/task:0", x), {}


def stepper(tf, sess, kind):
    fetch, feeds = graph(tf, kind)
    if kind == "callable":
        return sess.make_callable(fetch)
    return lambda: sess.run(fetch, feeds)


def timed(step, n):
    """Returns the times of n calls, in µs."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        step()
        times.append(1e6 * (time.perf_counter() - start))
    return times


def percentile(times, p):
    times = sorted(times)
    return times[min(len(times) - 1, int(p * len(times)))]


def row_names(what, clients):
    of = "" if clients == 1 else f", {clients} clients"
    return f"{what}{of}: median", f"{what}{of}: 99th percentile"


def entries(what, clients, times):
    median, tail = row_names(what, clients)
    return {median: percentile(times, 0.5), tail: percentile(times, 0.99)}


def one_client(side):
    """Times every kind of step with one Python client."""
    import tensorflow.compat.v1 as tf

    c = side.cluster(JOBS)
    out = {}
    for kind, what in STEPS.items():
        with (
            tf.Graph().as_default(),
            tf.Session(c.target("worker", 0), config=with_timeout(tf)) as sess,
        ):
            step = stepper(tf, sess, kind)
            timed(step, side.count(CALLS) // 5)
            out |= entries(what, 1, timed(step, side.count(CALLS)))
    return out


def with_timeout(tf):
    """Returns a config with a timeout, so that a server that hangs fails the measurement."""
    return tf.ConfigProto(operation_timeout_in_ms=30_000)


def many_clients(side):
    """Times some kinds of steps with many Python clients: threads in a few processes."""
    c = side.cluster(JOBS)
    out = {}
    for n in (8, 64):
        for kind in ("callable", "feed", "one hop"):
            args = c.target("worker", 0), kind, n // PROCESSES, side.count(MANY[n])
            times = side.clients.run(PROCESSES, threads, *args)
            out |= entries(STEPS[kind], n, sum(times, []))
    return out


def threads(index, target, kind, count, calls):
    """Runs the steps of count clients in this process and yields their times."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default() as g:
        fetch_and_feeds = graph(tf, kind)
        g.finalize()
        sessions = [tf.Session(target, graph=g, config=with_timeout(tf)) for _ in range(count)]
        try:
            yield from concurrently(sessions, kind, fetch_and_feeds, calls)
        finally:
            for s in sessions:
                s.close()


def concurrently(sessions, kind, fetch_and_feeds, calls):
    """Runs calls in one thread per session and yields all times."""
    fetch, feeds = fetch_and_feeds
    times = []

    def work(sess):
        step = sess.make_callable(fetch) if kind == "callable" else lambda: sess.run(fetch, feeds)
        mine = timed(step, calls)
        times.extend(mine[calls // 5 :])  # the first calls are a warm-up

    yield
    workers = [threading.Thread(target=work, args=(s,)) for s in sessions]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    if not times:
        raise RuntimeError("no client finished")
    yield times


def go_client(side):
    """Times steps with the Go client, with one session per client."""
    out = {}
    for r in go_steps(
        side.cluster(JOBS).target("worker", 0), {n: side.count(k) for n, k in MANY.items()}
    ):
        median, tail = row_names("Go client, " + STEPS[r["step"]], r["clients"])
        out |= {median: r["median"], tail: r["p99"]}
    return out


def go_steps(target, calls, *options):
    """Returns the output of the Go client. calls maps numbers of clients to calls per client."""
    calls = ",".join(f"{n}:{k}" for n, k in calls.items())
    done = subprocess.run(
        [GO, "-target", target, "-calls", calls, *options], capture_output=True, text=True, timeout=200
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def in_process(side):
    """Times a step of one node within a Go process. TensorFlow has no counterpart without C."""
    if side.server == cluster.TENSORFLOW:
        return {}
    (r,) = go_steps("local", {1: side.count(100_000)})
    return {IN_PROCESS: r["median"]}


def rows(prefix, kinds, clients, aim, headline=()):
    out = []
    for n in clients:
        for kind in kinds:
            for name in row_names(prefix + STEPS[kind], n):
                out.append(Row(name, "µs", aim=aim, headline=(kind, n) in headline))
    return out


IN_PROCESS = "Go, a step of one node in process: median"

GO_STEPS = ("callable", "feed", "one hop", "three hops")

MEASURED = [
    Group(
        "latency of one client",
        rows("", STEPS, (1,), 2.5, [(kind, 1) for kind in STEPS]),
        one_client,
        rounds=7,
    ),
    Group(
        "latency of many clients",
        rows("", ("callable", "feed", "one hop"), (8, 64), 2.5, [("callable", 64)]),
        many_clients,
        rounds=3,
        limit=120,
    ),
    Group(
        "latency of the Go client",
        rows("Go client, ", GO_STEPS, MANY, 5, [("callable", 1), ("callable", 64)]),
        go_client,
    ),
]
IN_ONE = Group("latency in process", [Row(IN_PROCESS, "µs", bound=2)], in_process)

GROUPS = MEASURED + [IN_ONE] + [nullserver.lower_bound(group) for group in MEASURED]
