"""Starts the tasks of a cluster as processes on the loopback interface, each served by Weft or by TensorFlow."""
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

# A server is a command line in which these names are filled in, or "tf" for TensorFlow's own.
BINARY = os.environ.get("WEFT_BINARY") or str(ROOT / "bin" / "weft")
WEFT = (f"{shlex.quote(BINARY)} server --cluster-spec={{cluster_spec}} --job-name={{job}}"
        " --task-index={task} --cpu-devices={cpu_devices}")
TENSORFLOW = "tf"

QUIET = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONWARNINGS": "ignore"}


def environment(**more):
    """The environment of processes, which find this package from any folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return dict(os.environ, **QUIET, PYTHONPATH=path, **more)


def free_ports(count):
    """Ports that nobody listened on a moment ago, all different."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [s.getsockname()[1] for s in sockets]
    finally:
        for s in sockets:
            s.close()


def addresses(jobs):
    """A free address for every task of some jobs."""
    ports = iter(free_ports(sum(jobs.values())))
    return {job: [f"127.0.0.1:{next(ports)}" for _ in range(n)] for job, n in jobs.items()}


class Ended(RuntimeError):
    """A task ended that should have started."""


class Cluster:
    """A cluster as a context manager: its tasks run inside the with block.

    jobs: the number of tasks per job, {"ps": 1, "worker": 2}
    server: what serves every task that others does not name
    others: what serves some, {("worker", 1): TENSORFLOW}
    apart: run in a folder that is gone with the cluster, for files that steps write
    """

    running = set()  # for whoever must end this process without leaving theirs behind

    def __init__(self, jobs, server=WEFT, cpu_devices=1, others=None, apart=False):
        self.server, self.cpu_devices, self.others, self.apart = server, cpu_devices, others or {}, apart
        self.spec = addresses(jobs)
        self.tasks = [(job, task) for job, n in jobs.items() for task in range(n)]
        self.log_dir = tempfile.TemporaryDirectory(prefix="weft-cluster-")
        self.processes = {}

    def __enter__(self):
        Cluster.running.add(self)
        try:
            try:
                self.start_all()
            except Ended:  # perhaps another process has taken a port meanwhile
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
        """Starts one task without waiting for it."""
        env = environment()
        env.pop("TF_CONFIG", None)
        folder = self.log_dir.name if self.apart else ROOT
        with open(self.log_path(job, task), "ab") as log:
            self.processes[job, task] = subprocess.Popen(
                self.command(job, task), cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def command(self, job, task):
        server = self.others.get((job, task), self.server)
        if server == TENSORFLOW:
            return [sys.executable, "-m", "interop.tfserver", json.dumps(self.spec), job, str(task), str(self.cpu_devices)]
        spec = ",".join(f"{name}|{';'.join(hosts)}" for name, hosts in self.spec.items())
        words = [word.format(cluster_spec=spec, job=job, task=task, cpu_devices=self.cpu_devices)
                 for word in shlex.split(server)]
        if os.sep in words[0]:
            words[0] = str(ROOT / words[0])
        return words

    def wait(self, job, task, seconds=500):
        """Waits until a task accepts connections."""
        host, port = self.spec[job][task].split(":")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.processes[job, task].poll() is not None:
                raise Ended(f"{job}/{task} exited before it listened:\n{self.log(job, task)}")
            try:
                socket.create_connection((host, int(port)), 1).close()
                return
            except OSError:
                time.sleep(0.002)
        raise RuntimeError(f"{job}/{task} does not listen after {seconds} s:\n{self.log(job, task)}")

    def kill(self, job, task):
        process = self.processes.pop((job, task))
        process.kill()
        process.wait()

    def log_path(self, job, task):
        return os.path.join(self.log_dir.name, f"{job}-{task}.log")

    def log(self, job, task, size=2000):
        """The end of what a task wrote."""
        with open(self.log_path(job, task), errors="replace") as f:
            return f.read()[-size:]

    def resident_mib(self):
        """The resident memory of each task, in MiB."""
        sizes = {}
        for key, process in self.processes.items():
            with open(f"/proc/{process.pid}/status") as f:
                sizes[key] = next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024
        return sizes


def processor_seconds(c):
    """The processor time of all tasks of a cluster so far, in their programs and for them in the kernel."""
    total = 0
    for process in c.processes.values():
        for thread in os.listdir(f"/proc/{process.pid}/task"):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
                with open(f"/proc/{process.pid}/task/{thread}/schedstat") as f:
                    total += int(f.read().split()[0])
    return total / 1e9
