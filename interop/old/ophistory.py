"""Makes internal/opkit/ophistory/history.txt from TensorFlows of several releases.

    python -m interop.old.ophistory ENVIRONMENTS history
    python -m interop.old.ophistory ENVIRONMENTS deprecated
    python -m interop.old.ophistory ENVIRONMENTS differences

ENVIRONMENTS is a folder with one virtual environment for each release of RELEASES, named after it.
The last release is that of the interpreter itself. The second form makes deprecated.txt. The third
form lists arguments, allowed values and defaults that differ between releases.
"""

import argparse
import os
import subprocess
import sys

from google.protobuf import text_format
from tensorflow.core.framework import op_def_pb2, types_pb2

RELEASES = ["0.12", "1.0", "1.4", "1.8", "1.12", "1.15"]
HERE = os.path.dirname(os.path.abspath(__file__))


def op_defs(python):
    """Returns the definitions of a release by name."""
    dump = subprocess.run(
        [python, "-W", "ignore", os.path.join(HERE, "dumpops.py"), "ops"],
        stdout=subprocess.PIPE,
        check=True,
        timeout=300,
    )
    return {op.name: op for op in op_def_pb2.OpList.FromString(dump.stdout).op}


def history(releases):
    """Returns the lines of the table."""
    for name in sorted(set().union(*releases)):
        having = [i for i, release in enumerate(releases) if name in release]
        words = [name] if having[0] == 0 else [name, str(having[0])]
        attrs = {}
        for i in having:
            for attr in releases[i][name].attr:
                attrs.setdefault(attr.name, i)
        words += [f"{a}={i}" for a, i in sorted(attrs.items()) if i != having[0]]
        yield " ".join(words)


def deprecated(release):
    """Returns the operations that newer graphs must not have: name, version, explanation."""
    for name, op in sorted(release.items()):
        if op.HasField("deprecation") and name != "Old":  # "Old" is for TensorFlow's tests
            yield f"{name} {op.deprecation.version} {op.deprecation.explanation}"


def describe(op):
    """Returns what is compared: the arguments, and each attribute's type, values and default."""
    facts = {}
    for kind, args in (("inputs", op.input_arg), ("outputs", op.output_arg)):
        bare = []
        for arg in args:
            copy = op_def_pb2.OpDef.ArgDef()
            copy.CopyFrom(arg)
            for field in ("description", "handle_data", "experimental_full_type"):
                copy.ClearField(field)
            bare.append("{" + text_format.MessageToString(copy, as_one_line=True) + "}")
        facts[kind] = " ".join(bare)
    for attr in op.attr:
        facts[attr.name + " kind"] = attr.type
        facts[attr.name + " default"] = text_format.MessageToString(
            attr.default_value, as_one_line=True
        )
        facts[attr.name + " minimum"] = f"{attr.has_minimum} {attr.minimum}"
        allowed = attr.allowed_values.list
        facts[attr.name + " values"] = " ".join(
            sorted(types_pb2.DataType.Name(t)[3:] for t in allowed.type)
            + sorted(s.decode() for s in allowed.s)
        )
    facts["stateful"] = str(op.is_stateful)
    facts["deprecated"] = str(op.deprecation.version)
    return facts


def differences(releases, names):
    """Returns a line for each fact that two successive releases do not agree on."""
    for op in sorted(set().union(*releases)):
        last, since = None, None
        for name, release in zip(names, releases):
            if op not in release:
                if last is not None:
                    yield f"{op}: gone in {name}"
                    last = None
                continue
            facts = describe(release[op])
            for key in sorted(set(last or {}) | set(facts) if last else ()):
                before, now = last.get(key), facts.get(key)
                if before is not None and before != now:
                    yield f"{op} {key}: {since} {before!r}, {name} {now!r}"
            last, since = facts, name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environments")
    parser.add_argument("what", choices=["history", "deprecated", "differences"])
    args = parser.parse_args()
    if args.what == "deprecated":
        print("\n".join(deprecated(op_defs(sys.executable))))
        return
    pythons = [os.path.join(args.environments, r, "bin/python") for r in RELEASES]
    releases = [op_defs(python) for python in [*pythons, sys.executable]]
    lines = (
        history(releases)
        if args.what == "history"
        else differences(releases, [*RELEASES, "newest"])
    )
    for line in lines:
        print(line)


if __name__ == "__main__":
    main()
