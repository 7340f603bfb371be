"""Runs cases on both sides and counts the outcomes."""

import collections
import dataclasses
import os
import subprocess
import sys
import tempfile
import threading

import grpc
from tensorflow.python.framework import op_def_registry

from interop import cluster
from interop.fuzz import allowed, caseblocks, cases, compare, master, tfprocess

SECONDS = 30  # timeout of a call
BATCH = 64  # cases in flight

OK, DIED, HANGS = "ok", "died", "hangs"
CODES = {code.value[0]: code.name for code in grpc.StatusCode}
JOB = "localhost"  # job name of sessions without a cluster


class Weft:
    """A Weft server that runs cases."""

    def __init__(self, server):
        self.server = server
        self.start()

    def start(self):
        self.cluster = cluster.Cluster({JOB: 1}, self.server, apart=True).__enter__()
        self.master = master.Master(self.cluster.spec[JOB][0], SECONDS)

    def stop(self):
        self.cluster.__exit__()

    def outcomes(self, some):
        """Returns for each case "ok" and the results, or the name of an error code and the text."""
        out = self.run(some)
        if len(some) > 1:  # a slow case, or one that takes all memory, delays the others
            for i, (kind, _) in enumerate(out):
                if kind == "DEADLINE_EXCEEDED":
                    out[i] = self.outcomes([some[i]])[0]
        if all(kind != "UNAVAILABLE" for kind, _ in out) or not self.restarted():
            return out
        if len(some) == 1:
            return [(DIED, out[0][1])]
        return [self.outcomes([case])[0] for case in some]  # find the case that crashed it

    def run(self, some):
        out, handles, steps = [None] * len(some), {}, {}
        creations = [self.master.create(case.nodes().SerializeToString()) for case in some]
        for i, creation in enumerate(creations):
            try:
                handles[i] = master.result(creation).session_handle
                steps[i] = self.master.run(
                    handles[i],
                    {n: cases.tensor(a).SerializeToString() for n, a in some[i].feeds().items()},
                    some[i].fetches(),
                )
            except master.Failure as e:
                out[i] = CODES[e.code], e.text
        for i, step in steps.items():
            try:
                out[i] = (
                    OK,
                    [
                        compare.array(t)
                        for t in master.fetched(master.result(step), some[i].fetches())
                    ],
                )
            except master.Failure as e:
                out[i] = CODES[e.code], e.text
            self.master.close(handles[i])
        return out

    def restarted(self):
        """Restarts the server if it exited, and reports whether it did."""
        try:
            self.cluster.processes[JOB, 0].wait(2)  # a crash takes a moment
        except subprocess.TimeoutExpired:
            return False
        self.stop()
        self.start()
        return True


class TensorFlow:
    """A process of tfprocess.py, which runs cases in TensorFlow."""

    def __init__(self):
        answers, theirs = os.pipe()
        env = cluster.environment(TF_ENABLE_ONEDNN_OPTS="0")
        self.folder = tempfile.TemporaryDirectory(
            prefix="weft-fuzz-", ignore_cleanup_errors=True
        )  # for files written by cases
        self.process = subprocess.Popen(
            [sys.executable, "-m", "interop.fuzz.tfprocess", str(theirs)],
            cwd=self.folder.name,
            env=env,
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs],
            bufsize=0,
        )
        os.close(theirs)
        self.answers = answers

    def stop(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.answers)
        self.folder.cleanup()

    def begin(self, some):
        """Sends cases. outcomes then waits for their outcomes."""

        def write():
            for case in some:
                request = case.nodes().SerializeToString(), case.feeds(), case.fetches()
                tfprocess.write(self.process.stdin.fileno(), request)

        self.writer = threading.Thread(target=write, daemon=True)
        self.writer.start()

    def outcomes(self, some):
        out = [tfprocess.read(self.answers) for _ in some]
        self.writer.join()
        return [(CODES.get(kind, kind), what) for kind, what in out]


@dataclasses.dataclass
class Findings:
    ops: list
    tries: int = 0
    succeeded: int = 0
    failed: int = 0
    allowed: int = 0
    died: int = 0
    different: int = 0
    left_out: dict = dataclasses.field(default_factory=dict)  # reason, by operation
    worked: collections.Counter = dataclasses.field(
        default_factory=collections.Counter
    )  # by operation
    reasons: collections.Counter = dataclasses.field(
        default_factory=collections.Counter
    )  # by line of allowed.DIFFERENCES
    errors: dict = dataclasses.field(default_factory=dict)  # last error, by operation
    shown: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def operations(known, generator):
    """Returns the operations to try, and the reason why each other one is not tried.

    Both systems must have the operation and a CPU kernel, and cases must be possible.
    """
    out, left_out = [], {}
    for op in sorted(known):
        if op_def_registry.get(op) is None:
            left_out[op] = "TensorFlow has no CPU kernel"
        elif why := allowed.skipped(op):
            left_out[op] = why
        elif not cases.cpu_kernels(op):
            left_out[op] = "TensorFlow has no CPU kernel"
        elif not usable(generator, op):
            left_out[op] = "unsupported inputs or attributes"
        else:
            out.append(op)
    return out, left_out


def weft_operations():
    """Returns the names of Weft's operations, from the documentation."""
    text = (cluster.ROOT / "docs" / "reference" / "ops.md").read_text()
    return {
        word.strip("`")
        for line in text.splitlines()
        for word in line.replace("|", " ").split()
        if word.startswith("`")
    }


def run(tries, seed, ops, server, shown, show_allowed=False, show_cases=False):
    generator = cases.Generator(seed)
    ops, left_out = (ops, {}) if ops else operations(weft_operations(), generator)
    found = Findings(ops, left_out=left_out)
    theirs, weft = TensorFlow(), Weft(server or cluster.WEFT)
    try:
        at = 0
        while found.tries < tries:
            some = []
            while len(some) < min(BATCH, tries - found.tries):
                try:
                    some.append(generator.case(found.ops[at % len(found.ops)]))
                except cases.Unsuitable:
                    continue
                at += 1
            theirs.begin(some)
            mine = weft.outcomes(some)
            for case, theirs_, mine_ in zip(some, theirs.outcomes(some), mine):
                count(case, *theirs_, *mine_, generator, found, shown, show_allowed, show_cases)
            if found.tries // 1000 != (found.tries - len(some)) // 1000:
                print(
                    f"{found.tries} tries, {found.different} differences",
                    file=sys.stderr,
                    flush=True,
                )
    except KeyboardInterrupt:
        pass  # report the findings so far
    finally:
        theirs.stop()
        weft.stop()
    return found


def job(args, number):
    """Runs the share of one job."""
    tries = args.tries // args.jobs + (number < args.tries % args.jobs)
    return run(
        tries,
        args.seed + number,
        args.ops.split(",") if args.ops else None,
        args.server,
        args.shown,
        args.allowed,
        args.cases,
    )


def usable(generator, op):
    """Reports whether the generator supports an operation."""
    for _ in range(30):
        try:
            generator.case(op)
            return True
        except cases.Unsuitable:
            pass
    return False


def count(case, expected, results, mine, answer, generator, found, shown, show_allowed, show_cases):
    """Counts the outcomes of one case."""
    found.tries += 1
    if expected in (DIED, HANGS):
        found.died += 1
        if mine != DIED:
            return
    kind, text = f"{expected} / {mine}", ""
    if expected == mine == OK:
        generator.remember(case)
        found.worked[case.op] += 1
        text = compare.difference(
            results, answer, allowed.undefined(case), allowed.tolerances(case.op)
        )
        if text is None:
            found.succeeded += 1
            return
        kind = "ok / other"
    elif expected == mine != DIED:
        found.failed += 1
        found.errors[case.op] = results
        return
    line = allowed.reason(case, kind, results, answer)
    if line is not None:
        found.allowed += 1
        found.reasons[line] += 1
        if not show_allowed:
            return
        kind += f" ({allowed.DIFFERENCES[line][2]})"
    else:
        found.different += 1
    found.shown[case.op, kind] += 1
    if found.shown[case.op, kind] <= shown:
        text = (
            text
            or f"TensorFlow: {str(results)[:300] if expected != OK else OK}\n  Weft: {str(answer)[-300:] if mine != OK else OK}"
        )
        print(f"{kind}: {case}\n  {text}\n", flush=True)
        if show_cases:
            print(caseblocks.block(case, expected, results), flush=True)
