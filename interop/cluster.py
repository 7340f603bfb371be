"""Clusters of processes on the loopback interface. Weft or TensorFlow serves each task."""

import contextlib
import json
import os
import pathlib
import shlex
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent

# A server is a command line with these placeholders, or "tf" for TensorFlow's own server.
BINARY = os.environ.get("WEFT_BINARY") or str(ROOT / "bin" / "weft")
WEFT = (
    f"{shlex.quote(BINARY)} server --cluster-spec={{cluster_spec}} --job-name={{job}}"
    " --task-index={task} --cpu-devices={cpu_devices}"
)
# The program with two GPU devices, which are in software unless the flags of WEFT_INTEROP_GPU say
# otherwise.
BINARY_GPU = os.environ.get("WEFT_GPU_BINARY") or str(ROOT / "bin" / "weft-gpu")
GPU_FLAGS = os.environ.get("WEFT_INTEROP_GPU") or "--gpu=host:2"
WEFT_GPU = WEFT.replace(shlex.quote(BINARY), shlex.quote(BINARY_GPU), 1) + " " + GPU_FLAGS
TENSORFLOW = "tf"

CONNECT_INTERVAL = 0.002  # seconds between attempts to connect to a new task

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}


def environment(**more):
    """Returns the environment of a process that can import this package from any folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return dict(os.environ, **QUIET, PYTHONPATH=path, **more)


def free_ports(count):
    """Returns different ports that were free at the time of the call."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def addresses(jobs):
    """Returns a free address for each task."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for job, n in jobs.items()}


class Ended(RuntimeError):
    """A task exited during its start."""


class Cluster:
    """A cluster as a context manager. Its tasks run inside the with block.

    jobs: the number of tasks per job, {"ps": 1, "worker": 2}
    server: the server of every task that is not in others
    others: the servers of some tasks, {("worker", 1): TENSORFLOW}
    apart: run in a temporary folder, for files that steps write
    variables: environment variables of the tasks, besides those of this process
    """

    running = set()  # clusters to stop if this process must exit early

    def __init__(
        self, jobs, server=WEFT, cpu_devices=1, others=None, apart=False, variables=None
    ):
        self.server, self.cpu_devices, self.others, self.apart = (
            server,
            cpu_devices,
            others or {},
            apart,
        )
        self.variables = variables or {}
        self.spec = addresses(jobs)
        self.tasks = [(job, task) for job, n in jobs.items() for task in range(n)]
        self.log_dir = tempfile.TemporaryDirectory(prefix="weft-cluster-")
        self.processes = {}

    def __enter__(self):
        Cluster.running.add(self)
        try:
            try:
                self.start_all()
            except Ended:  # another process may have taken a port
                self.stop_all()
                self.spec = addresses({job: len(hosts) for job, hosts in self.spec.items()})
                self.start_all()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc):
        self.stop_all()
        Cluster.running.discard(self)
        self.log_dir.cleanup()

    def start_all(self):
        for job, task in self.tasks:
            self.start(job, task)
        for job, task in self.tasks:
            self.wait(job, task)

    def stop_all(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait()
        self.processes = {}

    def target(self, job="worker", task=0):
        return "grpc://" + self.spec[job][task]

    def start(self, job, task):
        """Starts one task without waiting until it listens."""
        env = environment(**self.variables)
        env.pop("TF_CONFIG", None)
        folder = self.log_dir.name if self.apart else ROOT
        with open(self.log_path(job, task), "ab") as log:
            self.processes[job, task] = subprocess.Popen(
                self.command(job, task),
                cwd=folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def command(self, job, task):
        server = self.others.get((job, task), self.server)
        if server == TENSORFLOW:
            return [
                sys.executable,
                "-m",
                "interop.tfserver",
                json.dumps(self.spec),
                job,
                str(task),
                str(self.cpu_devices),
            ]
        spec = ",".join(f"{name}|{';'.join(hosts)}" for name, hosts in self.spec.items())
        words = [
            word.format(cluster_spec=spec, job=job, task=task, cpu_devices=self.cpu_devices)
            for word in shlex.split(server)
        ]
        if os.sep in words[0]:
            words[0] = str(ROOT / words[0])
        return words

    def wait(self, job, task, seconds=500):
        """Waits until a task accepts connections."""
        host, port = self.spec[job][task].split(":")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError):
                socket.create_connection((host, int(port)), 1).close()
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes[job, task].wait(CONNECT_INTERVAL)
                raise Ended(f"{job}/{task} exited before it listened:\n{self.log(job, task)}")
        raise RuntimeError(
            f"{job}/{task} did not listen within {seconds} s:\n{self.log(job, task)}"
        )

    def kill(self, job, task):
        """Kills one task and waits until it is gone."""
        process = self.processes.pop((job, task))
        process.kill()
        process.wait()

    def log_path(self, job, task):
        return os.path.join(self.log_dir.name, f"{job}-{task}.log")

    def log(self, job, task, size=2000):
        """Returns the last size characters of a task's log."""
        with open(self.log_path(job, task), errors="replace") as f:
            return f.read()[-size:]

    def resident_mib(self):
        """Returns the resident memory of each task, in MiB."""
        sizes = {}
        for key, process in self.processes.items():
            with open(f"/proc/{process.pid}/status") as f:
                sizes[key] = (
                    next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024
                )
        return sizes


def cpu_seconds(c):
    """Returns the CPU time of all tasks of a cluster so far, in user and kernel mode."""
    total = 0
    for process in c.processes.values():
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread exited
                with open(f"/proc/{process.pid}/task/{thread}/schedstat") as f:
                    total += int(f.read().split()[0])
    return total / 1e9
