"""Processes of one run: servers of Weft and of an old TensorFlow, and programs, with their logs."""

import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import time

from interop.cluster import BINARY, addresses

CLIENT = pathlib.Path(__file__).resolve().parent / "client"
WEFT = (
    f"{shlex.quote(BINARY)} server --cluster-spec={{cluster_spec}} --job-name={{job}}"
    " --task-index={task} --cpu-devices={cpus}"
)

START_SECONDS = 120  # for a server on a machine that is busy
NOT_INHERITED = [
    "TF_CONFIG",
    "PYTHONPATH",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
]


class Failed(Exception):
    """A run did not do what it must."""


class Processes:
    """The processes of one run as a context manager, which kills them at the end.

    folder: where their logs are, one file each, named after the process
    jobs: the number of tasks per job; self.spec has their addresses
    """

    def __init__(self, folder, python, jobs, server=WEFT, cpus=1):
        self.folder, self.python, self.server, self.cpus = folder, python, server, cpus
        self.spec = addresses(jobs)
        self.running = {}
        os.makedirs(folder, exist_ok=True)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for p in self.running.values():
            for sig in (signal.SIGTERM, signal.SIGKILL):
                if p.poll() is None:
                    try:
                        os.killpg(p.pid, sig)  # the process and what it started
                    except ProcessLookupError:
                        break
                    try:
                        p.wait(1 if sig == signal.SIGTERM else None)
                    except subprocess.TimeoutExpired:
                        continue

    def start(self, name, command, **env):
        """Starts a process whose output goes to the log of that name."""
        inherited = {k: v for k, v in os.environ.items() if k not in NOT_INHERITED}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "1", "PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
        with open(self.path(name), "ab") as log:
            self.running[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env={**inherited, **quiet, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_server(self, job, task, weft):
        """Starts the server of a task without waiting until it listens."""
        if weft:
            spec = ",".join(f"{name}|{';'.join(hosts)}" for name, hosts in self.spec.items())
            command = [
                w.format(cluster_spec=spec, job=job, task=task, cpus=self.cpus)
                for w in shlex.split(self.server)
            ]
        else:
            command = [self.python, str(CLIENT / "server.py"), json.dumps(self.spec), job]
            command += [str(task), str(self.cpus)]
        self.start(f"server-{job}-{task}", command)

    def wait_for_servers(self):
        """Waits until the servers that were started accept connections."""
        end = time.monotonic() + START_SECONDS
        for name in [n for n in self.running if n.startswith("server-")]:
            _, job, task = name.split("-")
            host, port = self.spec[job][int(task)].split(":")
            while True:
                try:
                    socket.create_connection((host, int(port)), 1).close()
                    break
                except OSError:
                    self.check_servers()
                    if time.monotonic() > end:
                        raise Failed(f"{name} does not listen: {self.last_words(name)}") from None
                    time.sleep(0.02)

    def check_servers(self):
        """Raises Failed if a server has ended."""
        for name, p in self.running.items():
            if name.startswith("server-") and p.poll() is not None:
                raise Failed(f"{name} ended with {p.poll()}: {self.last_words(name)}")

    def path(self, name):
        return os.path.join(self.folder, name + ".log")

    def log(self, name):
        with open(self.path(name), errors="replace") as f:
            return f.read()

    def last_words(self, name):
        """Returns the last error in a log, or its last line."""
        lines = [x.strip() for x in self.log(name).splitlines() if x.strip()]
        errors = [
            k
            for k, x in enumerate(lines)
            if re.search(r"(Error|error:|Exception)\b.*:|\] Check", x)
        ]
        at = errors[-1] if errors else len(lines) - 1
        return " | ".join(lines[at : at + 3])[:500] if lines else "no output"
