"""Processes that replace the servers which TensorFlow's own tests start.

The tests start servers in their own process, and clusters of processes that can be killed and
started again. install() replaces both by processes of Weft or of TensorFlow.
"""

import copy
import ctypes
import multiprocessing.connection
import os
import shlex
import signal
import socket
import subprocess
import threading
import time

from interop import cluster

KINDS = ("weft", "tensorflow")
START_LIMIT = 60  # seconds until a server must listen
SHORTEST_KILL = 0.2  # seconds


def end_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


class Starter:
    """A process that starts and kills servers for its parent.

    A process that has started TensorFlow's runtime cannot fork servers, and importing TensorFlow
    takes seconds. So this one imports it and never starts the runtime.
    """

    def __init__(self, kind, log):
        self.kind, self.log, self.lock = kind, log, threading.Lock()
        self.connection, there = multiprocessing.connection.Pipe()
        if os.fork() == 0:
            end_with_parent()
            self.connection.close()
            self.serve(there)
            os._exit(0)
        there.close()

    def ask(self, *request):
        with self.lock:
            self.connection.send(request)
            return self.connection.recv()

    def serve(self, connection):
        while True:
            try:
                action, *arguments = connection.recv()
            except EOFError:
                return
            connection.send(self.start(*arguments) if action == "start" else self.kill(*arguments))

    def start(self, spec, job, task):
        """Returns the process that serves a task."""
        with open(self.log, "ab") as log:
            if self.kind == "weft":
                jobs = ",".join(name + "|" + ";".join(tasks) for name, tasks in spec.items() if tasks)
                command = shlex.split(cluster.WEFT)
                command = [
                    word.format(cluster_spec=jobs, job=job, task=task, cpu_devices=1)
                    for word in command
                ]
                return subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=end_with_parent
                ).pid
            pid = os.fork()
            if pid == 0:
                end_with_parent()
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                serve_tensorflow(spec, job, task)
            return pid

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def serve_tensorflow(spec, job, task):
    try:
        import tensorflow as tf

        tf.distribute.Server(spec, job_name=job, task_index=task, protocol="grpc").join()
    finally:
        os._exit(1)


class Ports:
    """Picks ports that the kernel does not give to connections, so that a task can start again."""

    LOWEST, HIGHEST = 20000, 30000

    def __init__(self):
        self.next = self.LOWEST + os.getpid() * 61 % (self.HIGHEST - self.LOWEST)

    def pick(self):
        while True:
            self.next = self.next + 1 if self.next < self.HIGHEST else self.LOWEST
            with socket.socket() as s:
                try:
                    s.bind(("127.0.0.1", self.next))
                    return self.next
                except OSError:
                    pass


def wait_until_listens(address):
    host, _, port = address.rpartition(":")
    end = time.monotonic() + START_LIMIT
    while True:
        try:
            socket.create_connection((host, int(port)), 1).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(cluster.CONNECT_INTERVAL)


def install(starter, ports, one_cluster=False):
    """Replaces the servers of this process. Returns a list of those that were started.

    With one_cluster, clusters of the same size are the same processes: the tasks of one that was
    stopped go on, and serve the next one.
    """
    import tensorflow as tf
    from tensorflow.python.distribute import multi_worker_test_base as base
    from tensorflow.python.framework import test_util
    from tensorflow.python.training import server_lib

    started, stopped = [], {}

    def launch(spec, job, task):
        pid = starter.ask("start", spec, job, task)
        started.append(pid)
        wait_until_listens(spec[job][task])
        return pid

    class Server(server_lib.Server):
        """A server in a process of its own, which ends with this process."""

        def __init__(
            self, server_or_cluster_def, job_name=None, task_index=None, protocol=None,
            config=None, start=True,
        ):
            self._server_def = server_lib._make_server_def(
                server_or_cluster_def, job_name, task_index, protocol or "grpc", config
            )
            job, task = self._server_def.job_name, self._server_def.task_index
            spec = {}
            for name, tasks in server_lib.ClusterSpec(self._server_def.cluster).as_dict().items():
                spec[name] = [
                    a.removesuffix(":0") + f":{ports.pick()}" if a.endswith(":0") else a
                    for a in tasks
                ]
            self.address = spec[job][task]
            launch(spec, job, task)

        def __del__(self):
            pass

        def start(self):
            pass

        def join(self):
            signal.pause()

        @property
        def target(self):
            return "grpc://" + self.address

    class MultiProcessCluster:
        """A cluster whose tasks can be killed and started again."""

        def __init__(self, resolver, stream_output=False, collective_leader=None):
            self.resolver, self.pids = resolver, {}
            before = stopped.pop(self.size(), None)
            if before:
                self.resolver, self.pids = before.resolver, before.pids

        @property
        def spec(self):
            return self.resolver.cluster_spec().as_dict()

        def size(self):
            return tuple((job, len(tasks)) for job, tasks in sorted(self.spec.items()))

        def start(self):
            for job, tasks in self.spec.items():
                for task in range(len(tasks)):
                    if (job, task) not in self.pids:
                        self.start_task(job, task)

        def stop(self):
            if one_cluster:
                stopped[self.size()] = self
                return
            for job, task in list(self.pids):
                self.kill_task(job, task)

        def kill_task(self, task_type, task_id):
            if (task_type, task_id) not in self.pids:
                raise ValueError(f"The task {task_type}:{task_id} doesn't exist.")
            # The tests kill a task on a thread and then begin to wait for that.
            time.sleep(SHORTEST_KILL)
            starter.ask("kill", self.pids.pop((task_type, task_id)))

        def start_task(self, task_type, task_id):
            if (task_type, task_id) in self.pids:
                raise ValueError(f"The task {task_type}:{task_id} is still alive.")
            self.pids[task_type, task_id] = launch(self.spec, task_type, task_id)

        @property
        def cluster_resolver(self):
            return copy.deepcopy(self.resolver)

    server_lib.Server = tf.distribute.Server = tf.compat.v2.distribute.Server = Server
    base.MultiProcessCluster = MultiProcessCluster
    base.pick_unused_port = test_util.pick_unused_port = ports.pick
    return started
