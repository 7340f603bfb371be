"""What the garbage collector takes of the servers while they train. TensorFlow has none."""
import time
import urllib.request

from bench import training
from bench.rows import Group, Row
from interop import cluster

JOBS = {"ps": 1, "worker": 2}
HIDDEN, STEPS = 100, 4000  # timed steps of each worker: the shorter a step, the more garbage for its time; some ten collections
CPU, PAUSED, LONGEST = ("garbage collector while training, " + what for what in ("share of CPU", "share of time that it pauses", "longest pause"))


def measure(side):
    """Figures of the task that fares worst."""
    if side.server == cluster.TENSORFLOW:
        return {}
    tasks = [(job, i) for job, n in JOBS.items() for i in range(n)]
    pages = [f"127.0.0.1:{port}" for port in cluster.free_ports(len(tasks))]
    servers = {task: f"{side.server} --metrics-address={page}" for task, page in zip(tasks, pages)}
    with cluster.Cluster(JOBS, side.server, others=servers) as c:
        seen = side.fleet.run(JOBS["worker"], train, pages, c.spec, "perceptron", HIDDEN, False, side.count(STEPS))
    found = [shares(before, after) for before, after in zip(*seen[0])]
    return {row: max(task[row] for task in found) for row in (CPU, PAUSED, LONGEST)}


def train(index, pages, *args):
    """A client that trains; what the servers had counted before and after its timed steps is what the first one yields last."""
    seen = []
    for _ in training.train(index, *args):
        if index == 0:
            seen.append([figures(page) for page in pages])
        yield seen[-2:]


def figures(address):
    """The numbers of a task's page of metrics by their names, and when that was."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))} | {"time": time.monotonic()}


def shares(before, after):
    grown = {name: after[name] - before[name] for name in after}
    collecting = grown["weft_gc_cpu_seconds_total"] + grown["weft_gc_idle_cpu_seconds_total"]
    return {
        CPU: 100 * collecting / grown["weft_cpu_seconds_total"],
        PAUSED: 100 * grown["weft_gc_pause_seconds_sum"] / grown["time"],
        LONGEST: 1e3 * after['weft_gc_pause_seconds{quantile="1"}'],  # since the server began
    }


GROUPS = [Group("garbage", [Row(CPU, "%", bound=1, headline=True), Row(PAUSED, "%", bound=1), Row(LONGEST, "ms")], measure, rounds=3, limit=120)]
