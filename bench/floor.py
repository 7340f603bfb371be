"""What steps would take with a server that takes no time: the clients' own share, which no server can take away."""
import contextlib
import pathlib
import subprocess

from bench.rows import Group, Row
from interop import cluster

PROGRAM = pathlib.Path(cluster.BINARY).with_name("bench-floor")
PREFIX = "floor, "


class Floor:
    """A side whose clients are answered by bench/floor: with what its servers answer to the first step of each session."""

    def __init__(self, side):
        self.side = side
        self.quick, self.fleet, self.count = side.quick, side.fleet, side.count

    def __enter__(self):
        self.running = contextlib.ExitStack()
        return self

    def __exit__(self, *_):
        self.running.close()

    def cluster(self, jobs, cpu_devices=1):
        return Front(self.side.cluster(jobs, cpu_devices), self.running)


class Front:
    """A cluster whose tasks have a floor before them."""

    def __init__(self, behind, running):
        self.behind, self.running = behind, running

    def target(self, job, task):
        to = self.behind.target(job, task).removeprefix("grpc://")
        program = self.running.enter_context(subprocess.Popen([PROGRAM, "-to", to], stdout=subprocess.PIPE, text=True))
        self.running.callback(program.kill)
        return "grpc://" + program.stdout.readline().strip()


def below(group, rounds=3):
    """The group that measures the floor of another one."""

    def measure(side):
        with Floor(side) as floor:
            return {PREFIX + row: value for row, value in group.measure(floor).items()}

    rows = [Row(PREFIX + row.name, row.unit) for row in group.rows]
    return Group("floor of the " + group.name, rows, measure, rounds, group.limit)
