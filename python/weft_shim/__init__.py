"""Runs TensorFlow programs with Weft servers, without a change to the programs.

    python -m weft_shim program.py ARGS...
    python -m weft_shim -m package.module ARGS...

A tf.train.Server of the program, in whatever way it is created, is a process `weft server` with the
same cluster, job, task and session configuration. It runs until the program ends, however it ends.

Environment:
    WEFT_BINARY        the weft program; by default the one in this package, else `weft` on PATH
    WEFT_SERVER_FLAGS  more flags of `weft server`, such as --insecure or --metrics-address=:9090
    WEFT_SHIM_REMOTE   1: start no server, and use the one that runs at the address of the task
    WEFT_SHIM_TIMEOUT  seconds to wait until a server serves, 60 by default

This module runs in the process of the program, on every Python from 2.7 and with every TensorFlow
from 0.12. It therefore imports nothing but the standard library.
"""

import atexit
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

# The one module in which every release defines its Server. 1.15 and 2.0 keep it in tensorflow_core.
SERVER_LIB = re.compile(r"^tensorflow(_core)?\.python\.training\.server_lib$")

POLL = 1.0  # seconds between attempts to reach a remote server
STOP = 5.0  # seconds that a server has to stop before it is killed


def install():
    """Makes the Server of TensorFlow a Weft server, now or when TensorFlow is imported."""
    if not any(isinstance(f, Finder) for f in sys.meta_path):
        sys.meta_path.insert(0, Finder())
    for name, module in list(sys.modules.items()):
        if SERVER_LIB.match(name) and hasattr(module, "Server"):
            patch(module)


class Finder(object):
    """Patches the module with the Server as soon as it is loaded, before others copy its names."""

    def find_spec(self, name, path=None, target=None):
        if not SERVER_LIB.match(name):
            return None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    patch_after_load(spec.loader)
                    return spec
        return None

    def find_module(self, name, path=None):  # Python 2
        return self if SERVER_LIB.match(name) and sys.version_info[0] == 2 else None

    def load_module(self, name):  # Python 2
        import imp

        package, _, last = name.rpartition(".")
        found = imp.find_module(last, sys.modules[package].__path__)
        try:
            module = imp.load_module(name, *found)
        finally:
            if found[0]:
                found[0].close()
        patch(module)
        return module


def patch_after_load(loader):
    execute = loader.exec_module

    def exec_module(module):
        del loader.exec_module
        execute(module)
        patch(module)

    loader.exec_module = exec_module


def patch(module):
    """Replaces what the class Server of TensorFlow does. The class and its aliases remain."""
    server = module.Server
    if "_weft_task" in vars(server):
        return

    def init(
        self,
        server_or_cluster_def,
        job_name=None,
        task_index=None,
        protocol=None,
        config=None,
        start=True,
    ):
        self._server_def = module._make_server_def(
            server_or_cluster_def, job_name, task_index, protocol, config
        )
        kind = Remote if os.environ.get("WEFT_SHIM_REMOTE", "0") not in ("", "0") else Local
        self._weft_task = kind(self._server_def, error_class(module))
        self._server = None
        if start:
            self._weft_task.start()

    def target(self):
        text = self._weft_task.target()
        # Before TensorFlow had a C API for servers, the target was of type bytes.
        return text if hasattr(module, "c_api") else text.encode()

    init.__doc__ = server.__init__.__doc__
    server._weft_task = None
    server.__init__ = init
    server.start = lambda self: self._weft_task.start()
    server.join = lambda self: self._weft_task.join()
    server.target = property(target, doc=server.target.__doc__)
    # A server that the program no longer refers to serves on, as TensorFlow's does.
    server.__del__ = lambda self: None


def error_class(module):
    """Returns the error that a Server of TensorFlow raises when it cannot be started."""
    errors = getattr(module, "errors", None)
    if hasattr(errors, "UnknownError"):
        return lambda message: errors.UnknownError(None, None, message)
    return RuntimeError


def log_flags():
    """Returns the flags of a log for people, with the lines that TensorFlow's server would print."""
    flags = [] if "WEFT_LOG_FORMAT" in os.environ else ["--log-format=text"]
    level = os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0")
    if level.isdigit() and level != "0" and "WEFT_LOG_LEVEL" not in os.environ:
        flags.append("--log-level=" + ("warn" if level == "1" else "error"))
    return flags


def seconds_to_wait():
    return float(os.environ.get("WEFT_SHIM_TIMEOUT") or 60)


class Task(object):
    """The task of a server definition."""

    def __init__(self, server_def, error):
        self.name = "/job:%s/task:%d" % (server_def.job_name, server_def.task_index)
        self.definition = server_def.SerializeToString()
        self.address = ""
        for job in server_def.cluster.job:
            if job.name == server_def.job_name:
                self.address = dict(job.tasks).get(server_def.task_index, "")
        self.error = error

    def failed(self, why, *args):
        return self.error("weft_shim: the server of %s %s" % (self.name, why % args))


class Remote(Task):
    """A server that runs elsewhere, at the address of the task."""

    def target(self):
        if not self.address or self.address.endswith(":0"):
            raise self.failed("is to be a remote one, but %r is not its address", self.address)
        return str("grpc://" + self.address)

    def start(self):
        self.target()
        deadline = time.time() + seconds_to_wait()
        while not self.reached():
            if time.time() > deadline:
                raise self.failed("does not run at %s", self.address)
            time.sleep(0.1)

    def join(self):
        self.start()
        while self.reached():
            time.sleep(POLL)

    def reached(self):
        host, _, port = self.address.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), 10).close()
            return True
        except (EnvironmentError, ValueError):
            return False


class Local(Task):
    """A server that this process starts, and that ends with it."""

    def __init__(self, server_def, error):
        Task.__init__(self, server_def, error)
        self.process = None
        self.owner = os.getpid()
        self.lock = threading.Lock()  # held while the server is started
        self.served_at = ""  # its target, once it serves
        self.reason = ""  # why it did not start
        self.told = threading.Event()  # it serves, or has ended
        self.ended = threading.Event()
        self.stopping = self.joined = False
        self.everywhere = False  # it listens on every address

    def target(self):
        if not self.served_at and self.address.endswith(":0"):
            self.start()  # it chooses its port
        address = (self.served_at or self.address).replace("grpc://", "", 1)
        host, _, port = address.rpartition(":")
        if (host == "127.0.0.1" or self.everywhere) and says_localhost():
            host = "localhost"
        return str("grpc://%s:%s" % (host, port))

    def start(self):
        with self.lock:
            if self.process is not None:
                return
            self.launch()
            self.told.wait(seconds_to_wait())
            if self.served_at:
                return
            ended = self.ended.is_set()
            self.stop()
            if self.reason:
                hint = " (WEFT_SERVER_FLAGS sets flags)" if " --" in self.reason else ""
                raise self.failed("did not start: %s%s", self.reason, hint)
            if ended:
                raise self.failed("did not start: %s %s", self.command[0], self.outcome())
            raise self.failed("does not serve after %g s", seconds_to_wait())

    def launch(self):
        self.command = [binary(self), "server", "--server-def=-", "--parent=%d" % os.getpid()]
        # Like TensorFlow's, the server does not outlast the program to finish steps of others.
        self.command += log_flags() + ["--grace=0s"] + self.flags()
        # A session of its own, so that Ctrl-C is a matter of the program alone.
        if sys.version_info[0] == 2:
            own = {"preexec_fn": os.setsid}
        else:
            own = {"start_new_session": True}
        try:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, close_fds=True, **own
            )
            self.process.stdin.write(self.definition)
            self.process.stdin.close()
        except EnvironmentError as e:
            if self.process is None:
                raise self.failed("cannot be started: %s: %s", self.command[0], e)
        atexit.register(self.stop)
        watch = threading.Thread(target=self.watch, name="weft server " + self.name)
        watch.daemon = True
        watch.start()

    def flags(self):
        """Returns the flags of the user. With --insecure it listens where TensorFlow's server
        does: at the port of the task, on every address."""
        flags = shlex.split(os.environ.get("WEFT_SERVER_FLAGS", ""))
        names = [f.split("=")[0].lstrip("-") for f in flags]
        if "insecure" in names and "listen" not in names and self.address:
            flags.append("--listen=:" + self.address.rpartition(":")[2])
            self.everywhere = True
        return flags

    def watch(self):
        """Reads what the server prints until it ends."""
        process = self.process
        for line in iter(process.stdout.readline, b""):
            line = line.decode("utf-8", "replace").strip()
            ready = re.search(r" ready: \S+ at (grpc://\S+), ", line)
            if ready:
                self.served_at = ready.group(1)
                self.told.set()
            elif " failed: " in line:
                self.reason = line.partition(" failed: ")[2]
        process.wait()
        self.ended.set()
        self.told.set()
        if self.served_at and not self.stopping and not self.joined:
            # The server of TensorFlow would have ended the process. Sessions on a server that is
            # gone would try to connect without end.
            message = "weft_shim: the server of %s %s, and with it the program\n"
            os.write(2, (message % (self.name, self.outcome())).encode())
            os._exit(1)

    def join(self):
        """Returns when the server has ended by request, and raises an error if it failed."""
        self.joined = True
        self.start()
        try:
            while not self.ended.is_set():
                self.ended.wait(3600)  # Python 2 handles signals only in a wait with a limit
        except KeyboardInterrupt:
            self.stop()
            raise
        if self.process.returncode not in (0, 128 + signal.SIGTERM):
            raise self.failed("%s", self.outcome())

    def stop(self):
        if self.process is None or os.getpid() != self.owner:
            return
        self.stopping = True
        for how in (signal.SIGTERM, signal.SIGKILL):
            if self.ended.is_set():
                return
            try:
                os.kill(self.process.pid, how)
            except OSError:
                pass
            self.ended.wait(STOP)

    def outcome(self):
        status = self.process.returncode
        if status is not None and status < 0:
            return "was ended by signal %d" % -status
        return "ended with status %s" % status


def binary(task):
    """Returns the path of the weft program."""
    given = os.environ.get("WEFT_BINARY")
    if given:
        return given
    folders = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin")]
    for folder in folders + os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, "weft")
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise task.failed("needs the program weft: it is not on PATH; WEFT_BINARY can name it")


def says_localhost():
    """Returns whether this release of TensorFlow writes localhost as the host of every target, as
    those before 2.3 do."""
    name = "tensorflow%s.python.framework.versions"
    module = sys.modules.get(name % "") or sys.modules.get(name % "_core")
    release = re.match(r"(\d+)\.(\d+)", str(getattr(module, "VERSION", "")))
    return release is not None and tuple(map(int, release.groups())) < (2, 3)
