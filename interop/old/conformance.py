"""Runs TensorFlow 1.15's own test files against a server of TensorFlow 1.15, then against Weft.

python -m interop.old.conformance --tests SOURCES [FILE...]

SOURCES is a source tree of TensorFlow 1.15. The Python that runs this has that release installed.
FILE is a path in the tree, or a part of one; without any, the files of conformance.txt run.

A case counts if it passes on TensorFlow's server and runs a step there. Such a case that does not
pass on Weft is lost. With --successor it also runs on a server of a later TensorFlow: Weft's
results are those of TensorFlow 2.21, which changed some. differences.txt gives the reasons of other
known cases. A case without an explanation makes this exit with 1.

Results are kept in a folder: a file that has results there is not run again.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from interop import cluster

HERE = pathlib.Path(__file__).resolve().parent
LIST = HERE / "conformance.txt"
DIFFERENCES = HERE / "differences.txt"
MODULE = "interop.old.testfile"
RESTARTS = 20  # of the process that runs a file: every case that never ends costs one


class Server(cluster.Cluster):
    """A cluster of one task: of Weft, or of the TensorFlow of a Python interpreter."""

    def __init__(self, python=None):
        super().__init__(
            {"localhost": 1}, cluster.TENSORFLOW if python else cluster.WEFT, apart=True
        )
        self.python = python

    def command(self, job, task):
        command = super().command(job, task)
        return [self.python] + command[1:] if self.python else command


class Results:
    """What is known of the cases of one file on one server: a file of JSON lines."""

    def __init__(self, path):
        self.path, self.cases, self.ended, self.message = path, {}, False, ""
        self.read()

    def read(self):
        if not self.path.exists():
            return
        with open(self.path) as f:
            for line in f:
                entry = json.loads(line)
                if "case" in entry:
                    self.cases[entry["case"]] = entry
                else:
                    self.ended, self.message = True, entry["message"]

    def forget(self, cases):
        """Drops the results of some cases, or of all if none are named."""
        kept = [e for c, e in self.cases.items() if cases and c not in cases]
        self.path.write_text("".join(json.dumps(e) + "\n" for e in kept))
        self.cases, self.ended, self.message = {e["case"]: e for e in kept}, False, ""

    def passes(self):
        """Returns the names of cases that passed with the help of the server."""
        return [c for c, e in self.cases.items() if e["status"] == "pass" and e["steps"]]


def first_line(message):
    """Returns the first line of the error at the end of a traceback."""
    error = r"^[\w.]*(?:Error|Exception|Interrupt)\b.*(?:(?<=:)\n.*)?"  # "From TASK:" has its own line
    errors = re.findall(error, message, re.MULTILINE)
    line = errors[-1] if errors else message.strip().rpartition("\n")[2]
    return line.replace("\n", " ")


def known_differences(path=DIFFERENCES):
    """Returns the reasons of cases that are known to differ, by file and case."""
    lines = path.read_text().splitlines()
    words = (line.split(" ", 2) for line in lines if line and not line.startswith("#"))
    return {(file, case): reason for file, case, reason in words}


def run_cases(command, args, env, results, broken=lambda: ""):
    """Runs a process that adds to the results, until it ends or a case takes too long.

    Returns a fault. broken: called each second, returns a fault of what the cases need
    """
    with open(results.path.with_suffix(".log"), "ab") as out:
        process = subprocess.Popen(
            command, cwd=args.tests, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
        try:
            size, changed = 0, time.monotonic()
            while process.poll() is None:
                try:
                    process.wait(1)
                except subprocess.TimeoutExpired:
                    pass
                fault = broken()
                if fault:
                    return fault
                now = results.path.stat().st_size if results.path.exists() else 0
                if now != size:
                    size, changed = now, time.monotonic()
                if time.monotonic() > changed + args.case_timeout:
                    return "a case took longer than --case-timeout"
            return "the process that ran the cases ended" if process.returncode < 0 else ""
        finally:
            process.kill()
            process.wait()


def run_once(args, python, file, results, cases):
    """Starts a server, and a process that runs the cases without results. Returns a fault."""
    with Server(python) as c:
        command = [sys.executable, "-m", MODULE, c.target("localhost"), args.tests, file]

        def broken():
            if c.processes["localhost", 0].poll() is not None:
                return "the server ended: " + c.log("localhost", 0)
            return ""

        env = cluster.environment(CUDA_VISIBLE_DEVICES="")
        return run_cases(command + [str(results.path)] + cases, args, env, results, broken)


def run_file(args, server, file, python=None, again=False, cases=()):
    """Runs a file on a server, unless there are results of it. Returns the results.

    again: forget the results of the named cases, or of all if none are named
    """
    results = Results(args.out / server / (file.replace("/", "__") + ".jsonl"))
    results.path.parent.mkdir(parents=True, exist_ok=True)
    if again:
        results.forget(cases)
    end = time.monotonic() + args.file_timeout
    for _ in range(RESTARTS):
        if results.ended:
            break
        fault = run_once(args, python, file, results, list(cases))
        results.read()
        if fault:
            print(f"    {server}: {fault}", flush=True)
        if time.monotonic() > end:
            print(f"    {server}: the file took longer than --file-timeout", flush=True)
            break
    return results


def explain(args, file, lost, ours):
    """Prints the lost cases of a file. Returns the number of those without an explanation."""
    reasons = known_differences()
    changed = []
    if args.successor and lost:
        later = run_file(args, "successor", file, args.successor, again=True, cases=lost)
        changed = [c for c in lost if later.cases.get(c, {}).get("status") == "fail"]
    unexplained = 0
    for case in lost:
        entry = ours.cases.get(case, {"status": "not run"})
        error = first_line(entry.get("message", ""))
        if (file, case) in reasons:
            print(f"    {case}: differs: {reasons[file, case]}", flush=True)
        elif case in changed:
            print(f"    {case}: changed by a later TensorFlow: {error}", flush=True)
        else:
            print(f"    {case}: {entry['status']}: {error}", flush=True)
            unexplained += 1
    return unexplained


def main():
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--tests", required=True, help="the folder of a source tree of 1.15")
    p.add_argument("--out", type=pathlib.Path, default=cluster.ROOT / ".tmp" / "conformance-old")
    p.add_argument("--successor", metavar="PYTHON", help="with a later TensorFlow, for lost cases")
    p.add_argument("--case", action="append", default=[], help="a case to run again on Weft")
    p.add_argument("--again", action="store_true", help="run all cases again on Weft")
    p.add_argument("--reference-only", action="store_true", help="run TensorFlow's server alone")
    p.add_argument("--case-timeout", type=int, default=120, help="seconds a case may take")
    p.add_argument("--file-timeout", type=int, default=1200, help="seconds a file may take")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    args.tests = os.path.abspath(args.tests)
    listed = LIST.read_text().split()
    chosen = [f for f in listed if not args.files or any(part in f for part in args.files)]
    wanted = passed = whole = unexplained = 0
    for file in chosen:
        start = time.monotonic()
        reference = run_file(args, "tensorflow", file, sys.executable)
        goal = reference.passes()
        if args.reference_only:
            print(f"{len(goal):5d}  {file}  {time.monotonic() - start:.0f} s", flush=True)
            continue
        ours = run_file(args, "weft", file, again=args.again or args.case, cases=args.case)
        lost = [c for c in goal if ours.cases.get(c, {}).get("status") != "pass"]
        seconds = time.monotonic() - start
        got = len(goal) - len(lost)
        print(f"{got:5d} of {len(goal):5d}  {file}  {seconds:.0f} s", flush=True)
        unexplained += explain(args, file, lost, ours)
        if reference.message:
            print(f"    not loaded: {reference.message}")
        wanted, passed, whole = wanted + len(goal), passed + got, whole + (not lost)
    if not args.reference_only:
        print(f"{passed} of {wanted} cases, {whole} of {len(chosen)} files whole")
        print(f"{unexplained} lost cases without an explanation")
    sys.exit(unexplained > 0)


if __name__ == "__main__":
    main()
