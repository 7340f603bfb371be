"""Runs TensorFlow's own tests of remote eager execution and parameter servers with Weft's servers.

python -m interop.tf2.conformance --tests SOURCES [FILE...]

SOURCES is a source tree of TensorFlow 2.21. FILE is a path in it, or a part of the path of a file
of conformance.txt; without any, the files of conformance.txt run. The servers that a file starts,
in its own process or as processes, become processes: first of TensorFlow, the reference, then of
Weft.

A case counts if it passes on TensorFlow's servers and its file has started some. Such a case that
does not pass on Weft is lost. differences.txt gives the reasons of known cases. A case without a
reason makes this exit with 1. Results are kept: a file that has results there is not run again.
"""

import argparse
import os
import pathlib
import sys
import time

from interop import cluster
from interop.old import conformance as old

HERE = pathlib.Path(__file__).resolve().parent
MODULE = "interop.tf2.testfile"
RESTARTS = 20  # of the process that runs a file: every case that never ends costs one


def run_once(args, kind, file, results, cases):
    """Starts a process that runs the cases without results. Returns a fault."""
    command = [sys.executable, "-m", MODULE, kind, args.tests, file, str(results.path), *cases]
    variables = cluster.environment()
    if args.one_cluster:
        variables["ONE_CLUSTER"] = "1"
    return old.run_cases(command, args, variables, results)


def run_file(args, kind, file, again=False):
    """Runs a file with one kind of servers, unless there are results. Returns the results."""
    results = old.Results(args.out / kind / (file.replace("/", "__") + ".jsonl"))
    results.path.parent.mkdir(parents=True, exist_ok=True)
    if again:
        results.forget(args.case)
    for _ in range(RESTARTS):
        if results.ended:
            break
        fault = run_once(args, kind, file, results, args.case)
        results.read()
        if fault:
            print(f"    {kind}: {fault}", flush=True)
    return results


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tests", required=True, help="the folder of a source tree of TensorFlow 2.21")
    p.add_argument("--out", type=pathlib.Path, default=cluster.ROOT / ".tmp" / "conformance-tf2")
    p.add_argument("--case", action="append", default=[], help="a case to run again on Weft")
    p.add_argument("--again", action="store_true", help="run all cases again on Weft")
    p.add_argument("--reference-only", action="store_true", help="run TensorFlow's servers alone")
    p.add_argument("--one-cluster", action="store_true", help="run all cases of a file on one cluster")
    p.add_argument("--case-timeout", type=int, default=120, help="seconds a case may take")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    args.tests, args.out = os.path.abspath(args.tests), args.out.absolute()
    if args.one_cluster:
        args.out /= "one-cluster"
    listed = (HERE / "conformance.txt").read_text().split()
    chosen = [f for f in listed if not args.files or any(part in f for part in args.files)]
    others = [f for f in args.files if f not in chosen]
    chosen += [f for f in others if os.path.isfile(os.path.join(args.tests, f))]
    reasons = old.known_differences(HERE / "differences.txt")
    wanted = passed = whole = unexplained = 0
    for file in chosen:
        start = time.monotonic()
        reference = run_file(args, "tensorflow", file)
        goal = reference.passes()
        if args.reference_only:
            print(f"{len(goal):5d}  {file}  {time.monotonic() - start:.0f} s", flush=True)
            continue
        ours = run_file(args, "weft", file, again=args.again or args.case)
        lost = [c for c in goal if ours.cases.get(c, {}).get("status") != "pass"]
        got = len(goal) - len(lost)
        print(f"{got:5d} of {len(goal):5d}  {file}  {time.monotonic() - start:.0f} s", flush=True)
        for case in lost:
            entry = ours.cases.get(case, {"status": "not run"})
            reason = reasons.get((file, case))
            unexplained += reason is None
            known = f"differs: {reason}" if reason else entry["status"] + ":"
            print(f"    {case}: {known} {old.first_line(entry.get('message', ''))}", flush=True)
        if reference.message:
            print(f"    not loaded: {reference.message}")
        wanted, passed, whole = wanted + len(goal), passed + got, whole + (not lost)
    if not args.reference_only:
        print(f"{passed} of {wanted} cases, {whole} of {len(chosen)} files whole")
        print(f"{unexplained} lost cases without an explanation")
    sys.exit(unexplained > 0)


if __name__ == "__main__":
    main()
