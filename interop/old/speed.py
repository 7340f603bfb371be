"""Steps per second of TensorFlow 1.15's workers with parameter servers of Weft and of 1.15, in turns.

  python -m interop.old.speed [--rounds N] [--steps N] [--release 1.15]
"""

import argparse
import json
import os
import statistics
import tempfile

from interop.old.processes import CLIENT, Failed, Processes
from interop.old.releases import environment

WORKERS = 2


def measure(folder, python, weft, steps):
    """Returns the steps per second of all workers."""
    with Processes(folder, python, {"ps": 1, "worker": WORKERS}) as run:
        run.start_server("ps", 0, weft)
        run.wait_for_servers()
        names = [f"worker-{task}" for task in range(WORKERS)]
        for task, name in enumerate(names):
            command = [python, str(CLIENT / "mlp.py"), json.dumps(run.spec), str(task), str(steps)]
            run.start(name, command)
        rate = 0.0
        for name in names:
            run.running[name].wait(300)
            lines = [x for x in run.log(name).splitlines() if x.startswith("rate ")]
            if not lines:
                raise Failed(f"{name} has not finished: {run.last_words(name)}")
            rate += float(lines[0].split()[1])
        return rate


def main():
    parser = argparse.ArgumentParser(prog="interop.old.speed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1500, help="steps of each worker")
    parser.add_argument("--release", default="1.15")
    args = parser.parse_args()
    python = environment(args.release)
    rates = {True: [], False: []}
    with tempfile.TemporaryDirectory() as folder:
        for i in range(args.rounds):
            for weft in (True, False) if i % 2 else (False, True):
                kind = "weft" if weft else "tensorflow"
                rates[weft].append(measure(os.path.join(folder, f"{kind}-{i}"), python, weft, args.steps))
    for weft, name in (True, "Weft"), (False, f"TensorFlow {args.release}"):
        print(f"{name}: {statistics.median(rates[weft]):.0f} steps/s ({min(rates[weft]):.0f}–{max(rates[weft]):.0f})")
    ratios = [a / b for a, b in zip(rates[True], rates[False])]
    print(f"ratio: {statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f}), {args.rounds} rounds")


if __name__ == "__main__":
    main()
