"""The tf.data service, with TensorFlow's client."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from interop import cluster
from interop.clustertest import ClusterTest

PROGRAMS = cluster.ROOT / "interop" / "tf2"
LIMIT = 200  # seconds for one program


class Service:
    """A dispatcher and workers as processes."""

    def __init__(self, workers, folder):
        ports = cluster.free_ports(workers + 1)
        self.dispatcher, self.workers = ports[0], ports[1:]
        self.folder, self.processes = pathlib.Path(folder), {}

    def __enter__(self):
        self.start_dispatcher()
        for k in range(len(self.workers)):
            self.start_worker(k)
        return self

    def __exit__(self, *exc):
        for name in list(self.processes):
            self.kill(name)

    def launch(self, name, *arguments):
        with open(self.folder / "log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [cluster.BINARY, "data-service", *arguments], stdout=log, stderr=log
            )

    def start_dispatcher(self):
        workers = ",".join(f"127.0.0.1:{port}" for port in self.workers)  # for static sharding
        arguments = (
            f"--port={self.dispatcher}",
            f"--work-dir={self.folder}/journal",
            f"--workers={workers}",
        )
        self.launch("dispatcher", "dispatcher", *arguments, "--worker-timeout=3s")
        cluster_wait(self.dispatcher)

    def start_worker(self, k):
        arguments = f"--port={self.workers[k]}", f"--dispatcher=127.0.0.1:{self.dispatcher}"
        self.launch(k, "worker", *arguments, "--heartbeat=200ms")
        cluster_wait(self.workers[k])

    def kill(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    @property
    def target(self):
        return f"grpc://127.0.0.1:{self.dispatcher}"


def cluster_wait(port):
    import socket

    end = time.monotonic() + 30
    while True:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        if time.monotonic() > end:
            raise AssertionError(f"nothing listens on port {port}")
        time.sleep(cluster.CONNECT_INTERVAL)


def start(program, *arguments):
    return subprocess.Popen(
        [sys.executable, program, *arguments],
        cwd=PROGRAMS,
        env=dict(os.environ, **cluster.QUIET),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


class DataService(ClusterTest):
    jobs = {}
    mixes = ["weft"]

    def test_pipelines(self):
        with tempfile.TemporaryDirectory() as folder, Service(2, folder) as service:
            program = start("dataservice.py", service.target)
            out, _ = program.communicate(timeout=LIMIT)
            self.assertEqual(out.splitlines()[-1:], ["ok"], out)

    def faults(self, change, mode):
        """Reads elements, and calls change after the first. Returns all elements."""
        with tempfile.TemporaryDirectory() as folder, Service(2, folder) as service:
            program = start("dataservicefaults.py", service.target, mode)
            self.assertEqual(program.stdout.readline().strip(), "first")
            change(service)
            out, _ = program.communicate("\n", timeout=LIMIT)
            self.assertTrue(out, "the program failed")
            return json.loads(out)

    def test_worker_dies(self):
        """The other worker produces the whole dataset."""
        got = self.faults(lambda service: service.kill(1), "parallel_epochs")
        self.assertTrue(set(range(300)) <= set(got), len(got))

    def test_worker_restarts(self):
        def restart(service):
            service.kill(0)
            service.start_worker(0)

        got = self.faults(restart, "parallel_epochs")
        self.assertTrue(set(range(300)) <= set(got), len(got))

    def test_dispatcher_restarts(self):
        """No split is handed out twice, and none is lost."""

        def restart(service):
            service.kill("dispatcher")
            service.start_dispatcher()

        self.assertEqual(sorted(self.faults(restart, "distributed_epoch")), list(range(300)))
