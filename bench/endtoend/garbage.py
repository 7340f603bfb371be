"""The cost of the servers' garbage collector during training. TensorFlow has none."""

import time
import urllib.request

from bench.endtoend import training
from bench.rows import Group, Row
from interop import cluster

JOBS = {"ps": 1, "worker": 2}
# Short steps produce the most garbage per second. This number of timed steps per worker causes
# about ten collections.
HIDDEN, STEPS = 100, 4000
CPU, PAUSED, LONGEST = (
    "garbage collector while training, " + what
    for what in ("share of CPU", "share of time that it pauses", "longest pause")
)


def measure(side):
    """Returns the figures of the worst task."""
    if side.server == cluster.TENSORFLOW:
        return {}
    tasks = [(job, i) for job, n in JOBS.items() for i in range(n)]
    pages = [f"127.0.0.1:{port}" for port in cluster.free_ports(len(tasks))]
    servers = {task: f"{side.server} --metrics-address={page}" for task, page in zip(tasks, pages)}
    with cluster.Cluster(JOBS, side.server, others=servers) as c:
        seen = side.clients.run(
            JOBS["worker"], train, pages, c.spec, "perceptron", HIDDEN, False, side.count(STEPS)
        )
    found = [shares(before, after) for before, after in zip(*seen[0])]
    return {row: max(task[row] for task in found) for row in (CPU, PAUSED, LONGEST)}


def train(index, pages, *args):
    """Runs a training client.

    The last value that the first client yields is the metrics of all servers before and after the
    timed steps.
    """
    seen = []
    for _ in training.train(index, *args):
        if index == 0:
            seen.append([figures(page) for page in pages])
        yield seen[-2:]


def figures(address):
    """Returns the metrics of a task by name, with the current time."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {
        name: float(value)
        for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    } | {"time": time.monotonic()}


def shares(before, after):
    grown = {name: after[name] - before[name] for name in after}
    collecting = grown["weft_gc_cpu_seconds_total"] + grown["weft_gc_idle_cpu_seconds_total"]
    return {
        CPU: 100 * collecting / grown["weft_cpu_seconds_total"],
        PAUSED: 100 * grown["weft_gc_pause_seconds_sum"] / grown["time"],
        LONGEST: 1e3 * after['weft_gc_pause_seconds{quantile="1"}'],  # since the server started
    }


GROUPS = [
    Group(
        "garbage",
        [Row(CPU, "%", bound=1, headline=True), Row(PAUSED, "%", bound=1), Row(LONGEST, "ms")],
        measure,
        rounds=3,
        limit=120,
    )
]
