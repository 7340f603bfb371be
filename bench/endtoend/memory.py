"""The resident memory of tasks in a new cluster and after training."""

import statistics
import time

from bench.endtoend import training
from bench.rows import Group, Row

HIDDEN, STEPS = 2048, 60
REST = 12  # seconds; an idle Weft task releases memory after 5 to 10 s
# Size of the variables and of Adam's two slots, in MiB.
TENSORS = 3 * 4 * (784 * HIDDEN + HIDDEN + HIDDEN * 10 + 10) / 2**20


def measure(side):
    with side.fresh({"ps": 1, "worker": 2}) as c:
        idle = statistics.median(c.resident_mib().values())
        time.sleep(REST)
        idle_rested = statistics.median(c.resident_mib().values())
        side.clients.run(2, training.train, c.spec, "perceptron", HIDDEN, False, side.count(STEPS))
        after = c.resident_mib()
        time.sleep(REST)
        rested = c.resident_mib()
        return {
            IDLE: idle,
            IDLE_RESTED: idle_rested,
            PS: after["ps", 0],
            WORKER: after["worker", 1],
            PS_RESTED: rested["ps", 0],
            WORKER_RESTED: rested["worker", 1],
        }


IDLE = "resident memory, idle"
PS = f"of a ps after training, with variables of {TENSORS:.0f} MiB"
WORKER = "of a worker after training"
IDLE_RESTED, PS_RESTED, WORKER_RESTED = (f"{what}, {REST} s later" for what in (IDLE, PS, WORKER))

BOUNDS = {
    IDLE: 30,
    IDLE_RESTED: 30,
    PS: 30 + 1.3 * TENSORS,
    PS_RESTED: 30 + 1.3 * TENSORS,
    WORKER: None,
    WORKER_RESTED: None,
}

GROUPS = [
    Group(
        "memory",
        [Row(name, "MiB", bound=bound, headline=True) for name, bound in BOUNDS.items()],
        measure,
        rounds=3,
    )
]
