"""Runs cases on both servers and counts what comes of it."""
import collections
import dataclasses
import os
import select
import subprocess
import sys

import grpc
from tensorflow.python.framework import kernels, op_def_registry

from interop import cluster
from interop.fuzz import allowed, cases, compare, wire

SECONDS = 30              # that a call may take
CASES_OF_A_SESSION = 40   # placement looks at the whole graph with every extension

OK = "ok"
CODES = {code.value[0]: code.name for code in grpc.StatusCode}


class Died(Exception):
    """A server ended."""


class Side:
    """One of the two servers, and a session on it. A subclass starts and watches the server."""

    def __init__(self):
        self.session, self.used = None, 0

    def outcome(self, case):
        """Returns "ok" and the results, or the name of a code and the text."""
        try:
            if self.session is None or self.used >= CASES_OF_A_SESSION:
                if self.session:
                    self.session.close()
                self.session, self.used = self.master.session(), 0
            self.used += 1
            name = f"n{self.used}"
            self.session.extend(case.nodes(name))
            return OK, self.session.run(case.feeds(name), [f"{name}:{i}" for i in range(case.outputs)])
        except wire.Failure as e:
            if e.code in (grpc.StatusCode.UNAVAILABLE.value[0], grpc.StatusCode.DEADLINE_EXCEEDED.value[0]):
                self.session = None
                if self.died(e.code == grpc.StatusCode.DEADLINE_EXCEEDED.value[0]):
                    raise Died(e.text) from None
            return CODES[e.code], e.text


class Weft(Side):
    def __init__(self, server):
        super().__init__()
        self.server, self.cluster = server, None
        self.start()

    def start(self):
        self.cluster = cluster.Cluster({"worker": 1}, self.server).__enter__()
        self.master = wire.Master(self.cluster.spec["worker"][0], SECONDS)

    def stop(self):
        self.cluster.__exit__()

    def died(self, hangs):
        """Reports whether the server has ended, and starts another one then."""
        try:
            self.cluster.processes["worker", 0].wait(2)  # one that crashes takes a moment
        except subprocess.TimeoutExpired:
            return False
        self.stop()
        self.start()
        return True


class TensorFlow(Side):
    def __init__(self):
        super().__init__()
        address = f"127.0.0.1:{cluster.free_ports(1)[0]}"
        env = dict(os.environ, **cluster.QUIET)
        self.process = subprocess.Popen([sys.executable, "-m", "interop.fuzz.phoenix", address], cwd=cluster.ROOT, env=env,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.master = wire.Master(address, SECONDS)
        self.master.wait()

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def died(self, hangs):
        """Reports whether the server has ended, and waits for the next one then."""
        ended = bool(select.select([self.process.stdout], [], [], 0 if hangs else 10)[0])
        if ended:
            self.process.stdout.readline()
            self.master.wait()
        return ended


@dataclasses.dataclass
class Findings:
    ops: list
    tries: int = 0
    succeeded: int = 0
    failed: int = 0
    allowed: int = 0
    died: int = 0
    different: int = 0
    shown: collections.Counter = dataclasses.field(default_factory=collections.Counter)


def operations(known):
    """The operations to try: those that both have, with a kernel for CPUs, and that are not left out."""
    out = []
    for op in sorted(known):
        definition = op_def_registry.get(op)
        if definition and not allowed.skipped(op) and kernels.get_registered_kernels_for_op(op).kernel:
            out.append(op)
    return out


def ours():
    """The names of the operations that Weft has, from the list in its documentation."""
    text = (cluster.ROOT / "docs" / "ops.md").read_text()
    return {word.strip("`") for line in text.splitlines() for word in line.replace("|", " ").split() if word.startswith("`")}


def run(tries, seed, ops, server, shown):
    generator = cases.Generator(seed)
    found = Findings(ops or usable(generator, operations(ours())))
    theirs, weft = TensorFlow(), Weft(server or cluster.WEFT)
    try:
        while found.tries < tries:
            op = found.ops[found.tries % len(found.ops)]
            try:
                case = generator.case(op)
            except cases.Unsuitable:
                continue
            found.tries += 1
            if found.tries % 1000 == 0:
                print(f"{found.tries} tries, {found.different} differences", file=sys.stderr, flush=True)
            one(case, theirs, weft, generator, found, shown)
    except KeyboardInterrupt:
        pass  # what was found so far is told
    finally:
        theirs.stop()
        weft.stop()
    return found


def usable(generator, ops):
    """Leaves out operations of which no case can be made."""
    def can(op):
        for _ in range(30):
            try:
                generator.case(op)
                return True
            except cases.Unsuitable:
                pass
        return False
    return [op for op in ops if can(op)]


def one(case, theirs, weft, generator, found, shown):
    """Tries one case on both sides and counts it."""
    try:
        mine, answer = weft.outcome(case)
    except Died as e:
        mine, answer = "died", str(e)
    try:
        expected, results = theirs.outcome(case)
    except Died:
        found.died += 1
        if mine != "died":
            return
        expected, results = "died", []
    kind, text = f"{expected} / {mine}", ""
    if expected == mine == OK:
        generator.remember(case)
        text = compare.difference(results, answer)
        if text is None:
            found.succeeded += 1
            return
        kind = "ok / other"
    elif expected == mine and mine != "died":
        found.failed += 1
        return
    if allowed.reason(case.op, kind):
        found.allowed += 1
        return
    found.different += 1
    found.shown[case.op, kind] += 1
    if found.shown[case.op, kind] <= shown:
        text = text or f"TensorFlow: {str(results)[:300] if expected != OK else OK}\n  Weft: {str(answer)[-300:] if mine != OK else OK}"
        print(f"{kind}: {case}\n  {text}\n", flush=True)
