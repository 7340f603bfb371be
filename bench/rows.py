"""What is measured: rows of the table, in groups that are measured together.

A module with measurements lists its groups in GROUPS, and bench.run lists the module. It imports TensorFlow only inside of
functions: they run in a process of their own.

  def measure(side):                                   # called once per round for each side, in turns
      c = side.cluster({"ps": 1, "worker": 2})         # runs until the group is over
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
    aim: float | None = None  # by which factor Weft should be the better one
    bound: float | None = None  # what Weft's own figure should be no worse than
    headline: bool = False  # docs/benchmarks.md shows it


@dataclasses.dataclass(frozen=True)
class Group:
    name: str
    rows: list[Row]
    measure: Callable[["Side"], dict[str, float]]
    rounds: int = 5
    limit: float = 60  # seconds for one call of measure; what takes longer is ended


class Side:
    """One of the servers that are compared."""

    def __init__(self, name, server, quick, fleet):
        self.name, self.server, self.quick = name, server, quick
        self.fleet = fleet  # client processes, for measurements with several at once
        self.clusters = {}

    def cluster(self, jobs, cpu_devices=1):
        """A cluster with the given number of tasks per job. It is the same one for a whole group."""
        key = tuple(sorted(jobs.items())), cpu_devices
        if key not in self.clusters:
            self.clusters[key] = self.fresh(jobs, cpu_devices).__enter__()
        return self.clusters[key]

    def fresh(self, jobs, cpu_devices=1):
        """A cluster of the caller's own, as a context manager."""
        return cluster.Cluster(jobs, self.server, cpu_devices)

    def count(self, n):
        """How often to do something of which n times are enough."""
        return max(5, n // 10) if self.quick else n

    def release(self):
        for c in self.clusters.values():
            c.__exit__()
        self.clusters.clear()
