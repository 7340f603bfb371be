"""What TLS costs: small steps of a cluster with certificates beside one without.

The clusters take turns of some milliseconds, as in bench.endtoend.observed. The figures are ratios
of Weft to Weft, and rows of Weft alone.
"""

import contextlib
import os
import statistics
import subprocess
import tempfile

from bench.endtoend import latency, observed
from bench.rows import Group, Row
from interop import cluster

JOBS = {"ps": 1, "worker": 2}
CERTIFICATES = "--tls-cert={0}/{{job}}-{{task}}.pem --tls-key={0}/{{job}}-{{task}}.key --tls-ca={0}/ca.pem"


def make_certificates(folder):
    """Makes those of the tasks, and of a client."""
    tasks = [f"{job}/{task}" for job, n in JOBS.items() for task in range(n)]
    weft = [cluster.BINARY, "cert"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run([*weft, "ca", f"--dir={folder}", *tasks], **quiet)
    subprocess.run([*weft, "client", f"--dir={folder}", "bench/client"], **quiet)
    for kind in "pem", "key":
        os.rename(os.path.join(folder, f"bench-client.{kind}"), os.path.join(folder, f"client.{kind}"))


def measure(side):
    if side.server == cluster.TENSORFLOW:
        return {}
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        make_certificates(folder)

        def start(server):
            return stack.enter_context(cluster.Cluster(JOBS, server))

        plain, again = start(side.server), start(side.server)
        encrypted = start(f"{side.server} {CERTIFICATES.format(folder)}")
        targets = [c.target("worker", 0) for c in (plain, again, encrypted)]
        targets[2] = targets[2].replace("grpc:", "grpcs:")
        out = {}
        for kind, calls in observed.KINDS.items():
            turns = str(side.count(observed.TURNS))
            (found,) = latency.go_steps(
                ",".join(targets), {1: calls}, "-steps", kind, "-turns", turns, "-certificates", folder
            )
            for i, name in (1, AGAIN), (2, TLS):
                out[row_name(name, kind)] = statistics.median(turn[i] / turn[0] for turn in found["turns"])
        return out


def row_name(name, kind):
    return f"{observed.NAMES[kind]}, {name}, relative to without"


AGAIN, TLS = "without TLS again", "with TLS"
BOUNDS = {AGAIN: None, TLS: 1.1}

GROUPS = [
    Group(
        "tls",
        [Row(row_name(name, kind), "", bound=bound) for name, bound in BOUNDS.items() for kind in observed.KINDS],
        measure,
        rounds=3,
        limit=240,
    )
]
