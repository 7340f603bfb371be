"""What TLS costs: small steps of a cluster with certificates beside one without.

The clusters take turns of some milliseconds, as in bench.endtoend.observed. The figures are ratios
of Weft to Weft, and rows of Weft alone.
"""

import contextlib
import os
import subprocess
import tempfile

from bench.endtoend import observed
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
        targets = {PLAIN: plain.target("worker", 0), AGAIN: again.target("worker", 0)}
        targets[TLS] = encrypted.target("worker", 0).replace("grpc:", "grpcs:")
        return observed.relative_times(side, targets, "-certificates", folder)


PLAIN, AGAIN, TLS = "without", "without TLS again", "with TLS"
BOUNDS = {AGAIN: None, TLS: 1.1}

GROUPS = [
    Group(
        "tls",
        [
            Row(observed.row_name(name, kind, PLAIN), "", bound=bound)
            for name, bound in BOUNDS.items()
            for kind in observed.KINDS
        ],
        measure,
        rounds=3,
        limit=240,
    )
]
