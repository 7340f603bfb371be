"""The groups of the end-to-end table, in the order of their rows."""

import importlib

# Modules of bench.endtoend. Each lists its groups in GROUPS.
MODULES = (
    "start",
    "latency",
    "executor",
    "contention",
    "transfers",
    "training",
    "examples",
    "eager",
    "serving",
    "garbage",
    "memory",
    "observed",
    "encrypted",
    "scale",
)


def groups():
    """Returns the groups of all modules."""
    modules = (importlib.import_module("bench.endtoend." + name) for name in MODULES)
    return [group for module in modules for group in module.GROUPS]
