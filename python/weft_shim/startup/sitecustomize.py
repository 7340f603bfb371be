"""Runs at the start of each interpreter that weft_shim starts, and of those that these start."""

import os
import sys


def start(here):
    package = os.path.dirname(here)
    sys.path[:] = [p for p in sys.path if not p or os.path.abspath(p) != here]
    sys.path.insert(0, os.path.dirname(package))
    try:
        import weft_shim
    finally:
        del sys.path[0]
    weft_shim.install()
    # The installation may have a module of the same name, which this one hides.
    ours = sys.modules.pop("sitecustomize")
    try:
        import sitecustomize  # noqa: F401
    except ImportError:
        pass
    finally:
        sys.modules.setdefault("sitecustomize", ours)


start(os.path.dirname(os.path.abspath(__file__)))
