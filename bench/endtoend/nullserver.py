"""The latency of steps with the null server, which takes almost no time.

This is the clients' share of the latency, a lower bound for any server.
"""

import contextlib
import pathlib
import subprocess

from bench.rows import Group, Row
from interop import cluster

PROGRAM = pathlib.Path(cluster.BINARY).with_name("bench-nullserver")
PREFIX = "null server, "


class NullSide:
    """A side whose clients talk to bench/nullserver.

    It repeats the response of the real server to the first step of each session.
    """

    def __init__(self, side):
        self.side = side
        self.quick, self.clients, self.count = side.quick, side.clients, side.count

    def __enter__(self):
        self.running = contextlib.ExitStack()
        return self

    def __exit__(self, *_):
        self.running.close()

    def cluster(self, jobs, cpu_devices=1):
        return NullCluster(self.side.cluster(jobs, cpu_devices), self.running)


class NullCluster:
    """A cluster with a null server in front of each task."""

    def __init__(self, behind, running):
        self.behind, self.running = behind, running

    def target(self, job, task):
        to = self.behind.target(job, task).removeprefix("grpc://")
        program = self.running.enter_context(
            subprocess.Popen([PROGRAM, "-to", to], stdout=subprocess.PIPE, text=True)
        )
        self.running.callback(program.kill)
        return "grpc://" + program.stdout.readline().strip()


def lower_bound(group, rounds=3):
    """Returns the group that measures another one with the null server."""

    def measure(side):
        with NullSide(side) as null_side:
            return {PREFIX + row: value for row, value in group.measure(null_side).items()}

    rows = [Row(PREFIX + row.name, row.unit) for row in group.rows]
    return Group("nullserver " + group.name, rows, measure, rounds, group.limit)
