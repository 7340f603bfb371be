"""The session tests of interop with releases between the old ones and the pinned one.

The tests run under the release itself, so it is the client, and the TensorFlow of mixed clusters.
"""

import os
import re
import subprocess

from interop.cluster import ROOT

RELEASES = ["2.4", "2.10", "2.15"]
NAME = "sessions"
TESTS = ["sessions", "steps", "queues", "transfers"]  # these files suit old Pythons, too
SECONDS = 1500


class SessionCase:
    """The session tests under one release."""

    many = True

    def __init__(self, release):
        self.release = release
        self.title = f"{NAME} {release}"
        self.folder = os.path.join(NAME, release)

    def run(self, python, folder, server):
        os.makedirs(folder, exist_ok=True)
        command = [python, "-W", "ignore", "-m", "interop"]
        for name in TESTS:
            command += ["--file", name]
        with open(os.path.join(folder, "tests.log"), "w+") as log:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                yield "tests", "FAIL", f"not done in {SECONDS} s"
            log.seek(0)
            lines = log.read().splitlines()
        ended = False
        for k, line in enumerate(lines):
            if m := re.match(r"(ok  |FAIL) (\S+) [\d.]+s$", line):
                yield m[2], m[1].strip(), " | ".join(x.strip() for x in lines[k + 1 : k + 12])[
                    -400:
                ]
            ended = ended or re.match(r"\d+ passed, \d+ failed$", line) is not None
        if not ended:
            yield "tests", "FAIL", "ended early: " + " | ".join(lines[-3:])
