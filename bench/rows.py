"""Rows of the end-to-end table, in groups that are measured together.

A module in bench/endtoend lists its groups in GROUPS, and bench.groups lists the module. It imports
TensorFlow only inside functions, which run in the measuring process.

  def measure(side):                                   # called once per round and side, in turns
      c = side.cluster({"ps": 1, "worker": 2})         # runs until the end of the group
      return {"the name of a row": 12.3}

  GROUPS = [Group("name", [Row("the name of a row", "ms")], measure)]
"""

import dataclasses
from collections.abc import Callable

from interop import cluster


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    unit: str
    better: str = "lower"  # or "higher"
    aim: float | None = None  # factor by which Weft should be better
    bound: float | None = None  # limit for Weft's own figure
    headline: bool = False  # included in docs/benchmarks.md


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    rows: list[Row]
    measure: Callable[["Side"], dict[str, float]]
    rounds: int = 5
    limit: float = 60  # seconds for one call of measure, which is then killed


class Side:
    """One of the two servers."""

    def __init__(self, name, server, quick, clients):
        self.name, self.server, self.quick = name, server, quick
        self.clients = clients  # client processes, for measurements with concurrent clients
        self.clusters = {}

    def cluster(self, jobs, cpu_devices=1):
        """Returns a cluster with the given number of tasks per job, which a group shares."""
        key = tuple(sorted(jobs.items())), cpu_devices
        if key not in self.clusters:
            self.clusters[key] = self.fresh(jobs, cpu_devices).__enter__()
        return self.clusters[key]

    def fresh(self, jobs, cpu_devices=1):
        """Returns a new cluster, as a context manager."""
        return cluster.Cluster(jobs, self.server, cpu_devices)

    def count(self, n):
        """Returns n, or a tenth of it in a quick run."""
        return max(5, n // 10) if self.quick else n

    def release(self):
        """Stops the shared clusters."""
        for c in self.clusters.values():
            c.__exit__()
        self.clusters.clear()
