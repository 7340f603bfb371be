"""Programs of TensorFlow 2: remote operations and functions, and ParameterServerStrategy."""

import json
import subprocess
import sys

from bench.rows import Group, Row
from interop import cluster

PROGRAM = "bench.endtoend.eagerprogram"
REMOTE = "TensorFlow 2, "
LATENCIES = {
    "operation": "an operation on another task",
    "function": "a function on another task",
    "operation and fetch": "an operation on another task, and its value",
    "function and fetch": "a function on another task, and its value",
    "variable and fetch": "a function with a variable of a ps, and its value",
}
AIMS = {"operation": 2, "function": 1.5}  # the others spend most of their time in the client
CALLS = 400
STEPS = {"loop": 400, "keras": 400}
STRATEGY = {
    "loop": "ParameterServerStrategy, coordinator",
    "keras": "ParameterServerStrategy, Keras fit of an MLP",
}


def run(side, jobs, what, count):
    """Runs the program, in a process of its own, because this one runs TensorFlow as 1.x."""
    c = side.cluster(jobs)
    done = subprocess.run(
        [sys.executable, "-m", PROGRAM, json.dumps(c.spec), what, str(side.count(count))],
        capture_output=True,
        text=True,
        cwd=cluster.ROOT,
        env=cluster.environment(CUDA_VISIBLE_DEVICES=""),
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().rpartition("\n")[2])
    return json.loads(done.stdout.splitlines()[-1])


def latencies(side):
    times = run(side, {"ps": 1, "worker": 1}, "remote", CALLS)
    return {REMOTE + what: times[kind] for kind, what in LATENCIES.items()}


def strategy(kind):
    """Returns the group of one kind of training."""
    name = STRATEGY[kind]

    def measure(side):
        return {name: run(side, {"ps": 2, "worker": 2}, kind, STEPS[kind])["rate"]}

    row = Row(name, "steps/s", "higher", 1.5, headline=True)
    return Group(f"eager {kind}", [row], measure, rounds=3, limit=120)


GROUPS = [
    Group(
        "eager",
        [
            Row(REMOTE + what, "µs", aim=AIMS.get(kind), headline=kind in AIMS)
            for kind, what in LATENCIES.items()
        ],
        latencies,
        limit=120,
    ),
    strategy("loop"),
    strategy("keras"),
]
