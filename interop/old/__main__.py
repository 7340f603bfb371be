"""Runs programs of TensorFlow 0.12, 1.4 and 1.15. The last line is 'N passed, N failed'.

python -m interop.old                      the choice that fits ten minutes
python -m interop.old --all                every graph, program, release and cluster
python -m interop.old -k queue -r 1.4 -c WTT   graphs whose name contains queue, in one cluster
python -m interop.old -k hello -c all      programs whose name contains hello, in one layout
python -m interop.old --list               names only
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time

from interop.old import choice, graphs, later, releases, tutorials
from interop.old.processes import WEFT, Failed


def main():
    parser = argparse.ArgumentParser(
        prog="interop.old",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--all", action="store_true", help="run everything, with more releases")
    parser.add_argument(
        "-k", dest="names", action="append", default=[], help="only names that contain this"
    )
    parser.add_argument(
        "-r", dest="releases", action="append", default=[], help="only this release, such as 1.4"
    )
    parser.add_argument(
        "-c", dest="places", action="append", default=[], help="only this cluster or layout"
    )
    parser.add_argument(
        "--server", default=WEFT, help="command line of a server instead of bin/weft"
    )
    parser.add_argument("--keep", help="folder for the logs of all processes, kept")
    parser.add_argument("--list", action="store_true", help="list what would run")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that processes are stopped
    cases = choice.cases(args)
    if args.list:
        print("\n".join(c.title for c in cases))
        return
    logs = os.path.abspath(args.keep) if args.keep else tempfile.mkdtemp(prefix="weft-old-")
    pythons, missing = releases.environments(sorted({c.release for c in cases}))
    for release, why in missing.items():
        print(f"left out {release}: {why}", flush=True)
    result = Result()
    for case in cases:
        if case.release in pythons:
            result.run(case, pythons[case.release], os.path.join(logs, case.folder), args.server)
    if not args.keep:
        shutil.rmtree(logs, ignore_errors=True)
    left_out = f"; left out: {', '.join(missing)}" if missing else ""
    print(f"{result.passed} passed, {result.failed} failed{left_out}", flush=True)
    sys.exit(1 if result.failed or not (result.passed or missing) else 0)


class Result:
    """Prints a line per case, and what failed in it."""

    def __init__(self):
        self.passed = self.failed = 0

    def run(self, case, python, folder, server):
        started, passed, skipped, faults = time.monotonic(), 0, 0, []
        shutil.rmtree(folder, ignore_errors=True)
        try:
            for name, word, why in case.run(python, folder, server):
                passed += word == "ok"
                skipped += word == "skip"
                if word == "FAIL":
                    faults.append(f"{name}: {why}")
        except Failed as e:
            faults.append(str(e))
        self.passed += passed
        self.failed += len(faults)
        parts = [f"{passed} passed"] + ([f"{skipped} left out"] if skipped else [])
        counts = f", {', '.join(parts)}" if case.many else ""
        took = time.monotonic() - started
        print(f"{'FAIL' if faults else 'ok  '} {case.title}{counts} {took:.1f}s", flush=True)
        for fault in faults:
            print("     " + fault, flush=True)


if __name__ == "__main__":
    main()
