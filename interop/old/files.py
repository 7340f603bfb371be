"""Files of every kind between Weft and old TensorFlows, in both directions.

    python -m interop.old.files [RELEASE...]

Old TensorFlows read what the Go client writes, and the tool weft reads what they write. The last
line is "N passed, N failed".
"""

import argparse
import json
import os
import subprocess
import tempfile

from interop.cluster import BINARY, ROOT
from interop.old import releases
from interop.serving import check

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS = {"up": [0.5, 1.25], "down": [-0.5, -1.25]}
KINDS = 7  # files that readfiles.py reads; 0.12 has no operations for two of them


def run(*command, cwd=ROOT):
    """Returns the output of a command."""
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3")
    env.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=500)
    if done.returncode:
        tail = (done.stdout + done.stderr)[-1000:]
        raise RuntimeError(f"{' '.join(map(str, command))}: {tail}")
    return done.stdout


def weft(folder, *arguments):
    return json.loads(run(BINARY, *arguments, "-o", "json", cwd=folder))


class Cases:
    def __init__(self):
        self.passed, self.failed = 0, 0

    def report(self, name, fault=None):
        self.passed, self.failed = self.passed + (not fault), self.failed + bool(fault)
        print("FAIL" if fault else "ok  ", name, flush=True)
        if fault:
            print("     " + str(fault).replace("\n", "\n     "), flush=True)

    def run(self, name, case, *arguments):
        try:
            case(*arguments)
        except Exception as e:  # the next case is tried too
            self.report(name, f"{type(e).__name__}: {e}")
        else:
            self.report(name)


def read_by(cases, release, python, folder):
    """An old TensorFlow reads the files of the Go client."""
    lines = run(python, "-W", "ignore", f"{HERE}/readfiles.py", folder, f"{folder}/contents.json")
    found, faults = [], {}
    for line in lines.splitlines():
        word, _, kind = line.partition(" ")
        if word in ("ok", "FAIL"):
            found.append(kind)
            faults[kind] = "" if word == "ok" else "\n"
        elif found and faults[found[-1]]:
            faults[found[-1]] += line + "\n"
    for kind in found:
        cases.report(f"{release} reads {kind}", faults[kind])
    if len(found) != (KINDS - 2 if release == "0.12" else KINDS):
        cases.report(f"{release} reads files", f"{len(found)} kinds of files:\n{lines[-1000:]}")


def checkpoints(folder):
    for prefix, count in {
        "checkpoints/v1-3": 10,
        "checkpoints/v2-3": 13,
        "checkpoints/v1-sharded-?????-of-00002": 2,
        "checkpoints/v2-sharded": 2,
        ".": 2,
    }.items():
        tensors = weft(folder, "checkpoint", "verify", prefix)["tensors"]
        if tensors != count:
            raise AssertionError(f"{prefix}: {tensors} tensors")
    parts = weft(folder, "checkpoint", "show", "checkpoints/v1-3", "parts")["values"]
    if parts != [[2.0 * i, 2.0 * i + 1] for i in range(6)]:
        raise AssertionError(f"parts: {parts}")


def saved_model(folder):
    with open(os.path.join(folder, "results.json")) as f:
        want = json.load(f)
    for point, x in POINTS.items():
        got = weft(folder, "saved-model", "run", "model", "--input", f"x={json.dumps(x)}")
        for name in ("y", "dw"):
            pairs = zip(got[name], want[f"{point}/{name}"], strict=True)
            if any(abs(a - b) > 1e-5 for a, b in pairs):
                raise AssertionError(f"{point}/{name}: {got[name]}")


def graphs(folder):
    for graph in ("saved.meta", "frozen.pb", "frozen.pbtxt", "model"):
        missing = weft(folder, "ops", "--missing", graph)
        problems = weft(folder, "graph", "check", graph)
        if missing or problems:
            raise AssertionError(f"{graph}: {missing} {problems}")
    weft(folder, "saved-model", "freeze", "model", "again.pb", "--outputs", "y,dw")


def served(cases, release, python, folder):
    """A model server answers as the release itself."""
    run(python, "-W", "ignore", f"{ROOT}/interop/serving/write1.py", folder)
    for name, fault in check.check(folder):
        cases.report(f"weft serves {name} of {release}", fault)


def events(folder):
    tags = {item["tag"]: item["count"] for item in weft(folder, "events", "ls", "events")}
    for tag, count in {"loss": 2, "weights": 1, "digit/image/0": 1, "tone/audio/0": 1}.items():
        if tags.get(tag) != count:
            raise AssertionError(f"{tags}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=["0.12", "1.4", "1.15"])
    args = parser.parse_args()
    cases = Cases()
    with tempfile.TemporaryDirectory() as folder:
        ours = os.path.join(folder, "ours")
        os.mkdir(ours)
        contents = run("go", "run", "./interop/files", "write", ours)
        with open(os.path.join(ours, "contents.json"), "w") as f:
            f.write(contents)
        for release in args.releases:
            python = releases.environment(release)
            theirs = os.path.join(folder, release)
            run(python, "-W", "ignore", f"{HERE}/writefiles.py", theirs)
            for case in (checkpoints, saved_model, graphs, events):
                cases.run(f"weft reads {case.__name__} of {release}", case, theirs)
            read_by(cases, release, python, ours)
            if release != "0.12":  # writes no models for servers
                served(cases, release, python, os.path.join(folder, f"models-{release}"))
    print(f"{cases.passed} passed, {cases.failed} failed")
    raise SystemExit(1 if cases.failed else 0)


if __name__ == "__main__":
    main()
