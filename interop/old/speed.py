"""Steps per second of TensorFlow 1.15's workers with parameter servers of Weft and of 1.15, in turns.

  python -m interop.old.speed [--turns N] [--steps N] [--release 1.15]

Both parameter servers are in one cluster, and the same workers train an MLP on each of them in short
turns, so that the load of the machine does not change between the two.
"""

import argparse
import json
import statistics
import tempfile

from interop.old.processes import CLIENT, Failed, Processes
from interop.old.releases import environment

WORKERS = 2
SECONDS = 1200


def measure(folder, python, turns, steps):
    """Returns the steps per second of all workers by turn, with Weft and with TensorFlow."""
    with Processes(folder, python, {"ps": 2, "worker": WORKERS}) as run:
        run.start_server("ps", 0, weft=True)
        run.start_server("ps", 1, weft=False)
        run.wait_for_servers()
        names = [f"worker-{task}" for task in range(WORKERS)]
        for task, name in enumerate(names):
            command = [python, str(CLIENT / "mlp.py"), json.dumps(run.spec), str(task)]
            run.start(name, command + [str(turns), str(steps)])
        total = [0.0] * turns
        for name in names:
            run.running[name].wait(SECONDS)
            lines = [x.split() for x in run.log(name).splitlines() if x.startswith("turn ")]
            if len(lines) < turns:
                raise Failed(f"{name} has not finished: {run.last_words(name)}")
            order = [int(ps) for _, ps, _ in lines]
            total = [t + float(rate) for t, (_, _, rate) in zip(total, lines)]
    return [[rate for rate, ps in zip(total, order) if ps == server] for server in (0, 1)]


def main():
    parser = argparse.ArgumentParser(prog="interop.old.speed", description=__doc__)
    parser.add_argument("--turns", type=int, default=60)
    parser.add_argument("--steps", type=int, default=100, help="steps of each worker in a turn")
    parser.add_argument("--release", default="1.15")
    args = parser.parse_args()
    python = environment(args.release)
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(folder, python, args.turns, args.steps)
    rates = [r[1:] for r in rates]  # the first turn registers the graph
    for r, name in zip(rates, ("Weft", f"TensorFlow {args.release}")):
        low, middle, high = statistics.quantiles(r, n=4)
        print(f"{name}: {middle:.0f} steps/s ({low:.0f}–{high:.0f})")
    low, middle, high = statistics.quantiles([a / b for a, b in zip(*rates)], n=4)
    print(f"ratio: {middle:.2f} ({low:.2f}–{high:.2f}), {len(rates[0])} pairs of turns, quartiles")


if __name__ == "__main__":
    main()
