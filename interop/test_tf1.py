"""The programs of examples/python/tf1, unchanged, with the servers of python/weft_shim.

Some run with the TensorFlow of this interpreter, after a change of their import line. All run with
the releases whose interpreters the environment variable TENSORFLOWS lists.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from interop import cluster
from interop.clustertest import ClusterTest

PROGRAMS = cluster.ROOT / "examples" / "python" / "tf1"
SHIM = cluster.ROOT / "python"
IMPORT = "import tensorflow as tf\n"
IMPORT_V2 = "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()\n"
LIMIT = 300  # seconds for one program


class Tasks:
    """The processes of one program, one per task, in a folder of their own."""

    def __init__(self, python, modern, jobs):
        self.python, self.spec = python, cluster.addresses(jobs)
        self.dir = tempfile.TemporaryDirectory(prefix="weft-tf1-")
        self.programs = pathlib.Path(self.dir.name, "programs")
        shutil.copytree(PROGRAMS, self.programs)
        for path in self.programs.glob("*.py"):
            if modern:
                path.write_text(path.read_text().replace(IMPORT, IMPORT_V2))
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        for process in self.processes.values():
            process.kill()
            process.wait()
        self.dir.cleanup()

    def hosts(self):
        return [f"--{job}_hosts=" + ",".join(tasks) for job, tasks in self.spec.items()]

    def program(self, job, task, *args, shim=True, **env):
        """Starts a program as the process of a task."""
        command = [self.python, "-u", *(["-m", "weft_shim"] if shim else []), *args]
        self.start(job, task, command, WEFT_BINARY=cluster.BINARY, PYTHONPATH=str(SHIM), **env)

    def server(self, job, task, *flags):
        """Starts weft server as the process of a task."""
        spec = ",".join(f"{name}|{';'.join(hosts)}" for name, hosts in self.spec.items())
        command = [cluster.BINARY, "server", "--cluster-spec=" + spec, "--job-name=" + job]
        self.start(job, task, [*command, f"--task-index={task}", *flags])

    def start(self, job, task, command, **env):
        env = dict(os.environ, **cluster.QUIET, CUDA_VISIBLE_DEVICES="", **env)
        env.pop("TF2_BEHAVIOR", None)  # TensorFlow 2 sets it, and 1.15 heeds it
        with open(self.log_path(job, task), "wb") as log:
            self.processes[job, task] = subprocess.Popen(
                command,
                cwd=self.programs,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log_path(self, job, task):
        return os.path.join(self.dir.name, f"{job}-{task}.log")

    def log(self, job, task):
        return pathlib.Path(self.log_path(job, task)).read_text(errors="replace")

    def wait_for(self, text, *task):
        """Waits until a task has printed a text, or has ended."""
        deadline = time.monotonic() + LIMIT
        while text not in self.log(*task) and time.monotonic() < deadline:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes[task].wait(0.05)
                return

    def finish(self, *tasks):
        """Waits until tasks have ended, and returns their outputs."""
        deadline = time.monotonic() + LIMIT
        for key in tasks:
            try:
                status = self.processes[key].wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                status = f"none in {LIMIT} s"
            if status:
                logs = "".join(f"== {k}\n{self.log(*k)[-3000:]}" for k in self.processes)
                raise AssertionError(f"{key} ended with status {status}\n{logs}")
        return [self.log(*key) for key in tasks]

    def stop(self):
        """Ends the other tasks as a user does, and waits until no server answers."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(LIMIT)
        deadline = time.monotonic() + LIMIT
        for address in [a for tasks in self.spec.values() for a in tasks]:
            host, port = address.split(":")
            with contextlib.suppress(OSError):
                while time.monotonic() < deadline:
                    socket.create_connection((host, int(port)), 1).close()
                    time.sleep(0.05)
                raise AssertionError(f"a server still listens on {address}")


class Programs:
    """The tests of one release of TensorFlow. Each program has a cluster of its own."""

    python = sys.executable
    release = (2, 21)

    def tasks(self, **jobs):
        tasks = Tasks(self.python, self.release >= (2,), jobs)
        self.enterContext(tasks)
        return tasks

    def last(self, pattern, text):
        found = re.findall(pattern, text)
        self.assertTrue(found, text)
        return found[-1]

    def test_tf1_hello(self):
        t = self.tasks(local=1)
        t.program("local", 0, "hello.py")
        (out,) = t.finish(("local", 0))
        self.assertIn("Hello, distributed TensorFlow!", out)

    def test_tf1_a_plus_b(self):
        t = self.tasks(ps=1, worker=1)
        t.program("ps", 0, "a_plus_b.py", *t.hosts(), "--job_name=ps")
        t.program("worker", 0, "a_plus_b.py", *t.hosts(), "--job_name=worker")
        (out,) = t.finish(("worker", 0))
        self.assertIn("a + b + c = 3", out)
        for line in r"\ba: .*/job:ps/.*CPU:0", r"\bb: .*/job:ps/.*CPU:1":
            self.assertRegex(out.replace("/cpu:", "/device:CPU:"), line)
        t.stop()

    def test_tf1_in_graph(self):
        t = self.tasks(ps=1, worker=2)
        t.server("ps", 0)
        for i in range(2):
            t.program("worker", i, "in_graph.py", *t.hosts(), f"--task_index={i}")
        (out,) = t.finish(("worker", 0))
        self.assertEqual(self.last(r"step : (\d+)", out), "400")
        self.assertGreater(float(self.last(r"accuracy : ([0-9.]+)", out)), 0.8)
        t.stop()

    def mlp_mnist_dist(self, server, shim):
        t = self.tasks(ps=2, worker=2)
        program = ["mlp_mnist_dist.py", *t.hosts(), "--train_steps=600"]
        for i in range(2):
            if server:
                t.server("ps", i)
            else:
                t.program("ps", i, *program, "--job_name=ps", f"--task_index={i}")
            t.program("worker", i, *program, "--job_name=worker", f"--task_index={i}", shim=shim)
        for out in t.finish(("worker", 0), ("worker", 1)):
            self.assertGreaterEqual(int(self.last(r"step : (\d+)", out)), 600)
            self.assertGreater(float(self.last(r"test accuracy : ([0-9.]+)", out)), 0.9)
        t.stop()

    def test_tf1_mlp_mnist_dist(self):
        self.mlp_mnist_dist(server=False, shim=True)

    def test_tf1_mlp_mnist_dist_with_weft_ps(self):
        """The workers' servers are those of TensorFlow, without the shim."""
        self.mlp_mnist_dist(server=True, shim=False)

    def test_tf1_monitored(self):
        t = self.tasks(master=1, ps=1, worker=1)
        folder = os.path.join(t.dir.name, "model")
        t.server("ps", 0)
        for job in "master", "worker":
            config = {"cluster": t.spec, "task": {"type": job, "index": 0}}
            program = ["monitored.py", "--model_dir=" + folder, "--last_step=1000"]
            t.program(job, 0, *program, TF_CONFIG=json.dumps(config))
            if job == "master":  # a worker that finds no variables tries again after 30 s
                t.wait_for("step : ", job, 0)
        for out in t.finish(("master", 0), ("worker", 0)):
            self.assertIn("done w : [1.0, -2.0, 3.0] b : 4.00", out)
        self.assertIn("checkpoint", os.listdir(folder))
        t.stop()

    def test_tf1_sync_replicas(self):
        t = self.tasks(ps=1, worker=2)
        program = ["sync_replicas.py", *t.hosts(), "--last_step=100", "--save_steps=50"]
        t.program("ps", 0, *program, "--job_name=ps")
        for i in range(2):
            t.program("worker", i, *program, f"--task_index={i}")
        out, _ = t.finish(("worker", 0), ("worker", 1))
        self.assertGreater(float(self.last(r"done .*accuracy : ([0-9.]+)", out)), 0.8)
        for name in "saved_at_end", "saved_later":
            self.assertIn("saved_model.pb", os.listdir(t.programs / "model" / name))
        t.stop()

    def test_tf1_estimator(self):
        t = self.tasks(chief=1, ps=1, worker=1)
        folder = os.path.join(t.dir.name, "model")
        for job in "chief", "ps", "worker":
            config = {"cluster": t.spec, "task": {"type": job, "index": 0}}
            program = ["estimator.py", "--model_dir=" + folder, "--max_steps=1000"]
            t.program(job, 0, *program, TF_CONFIG=json.dumps(config))
        out, _ = t.finish(("chief", 0), ("worker", 0))
        self.assertIn("trained", out)
        self.assertLess(float(self.last(r"Loss for final step: (\d+\.\d+)", out)), 20)
        self.assertIn("checkpoint", os.listdir(folder))
        t.stop()

    def test_tf1_cifar10(self):
        t = self.tasks(ps=1, worker=2)
        program = ["cifar10.py", *t.hosts(), "--max_steps=60", "--train_dir=" + t.dir.name]
        t.server("ps", 0)
        for i in range(2):
            t.program("worker", i, *program, f"--task_index={i}")
        (out,) = t.finish(("worker", 0))
        first = float(re.search(r"step 0, loss = ([0-9.]+)", out)[1])
        self.assertLess(float(self.last(r"saved .*, loss = ([0-9.]+)", out)), 0.7 * first)
        self.assertIn("checkpoint", os.listdir(t.dir.name))
        t.stop()

    def test_tf1_target(self):
        """The target has the type and the host that TensorFlow's server gives it."""
        t = self.tasks(a=1, b=1)
        script = (
            "import tensorflow as tf;"
            "S = tf.train.Server if hasattr(tf.train, 'Server') else tf.distribute.Server;"
            "s = S(%r, 'a', 0); print('target ' + repr(s.target))"
        )
        for job, shim in ("a", True), ("b", False):
            spec = {"a": t.spec[job], "c": ["worker.example:1"]}
            t.program(job, 0, "-c", script % spec, shim=shim)
        with_shim, without = (
            re.search(r"target .*", out)[0].replace(t.spec[job][0].split(":")[1], "PORT")
            for job, out in zip("ab", t.finish(("a", 0), ("b", 0)))
        )
        self.assertEqual(with_shim, without)


def release_of(python):
    """Returns the release of TensorFlow of an interpreter, such as (1, 15)."""
    out = subprocess.check_output(
        [python, "-W", "ignore", "-c", "import tensorflow as tf; print('TF ' + tf.__version__)"],
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return tuple(int(n) for n in re.search(r"TF (\d+)\.(\d+)", out).groups())


def unsuited(release):
    """Yields the tests that a release cannot pass."""
    if release < (1, 4):  # the end of the session would wait for two minutes
        yield "test_tf1_sync_replicas"
    if not (1, 4) <= release < (2, 16):  # there is no tf.estimator.train_and_evaluate
        yield "test_tf1_estimator"


def add(name, python, release, without):
    members = {"python": python, "release": release, "__module__": __name__}
    members.update(setUpClass=classmethod(lambda cls: None), **dict.fromkeys(without))
    globals()[name] = type(name, (Programs, ClusterTest), members)


QUICK = {"test_tf1_hello", "test_tf1_sync_replicas", "test_tf1_target"}
add("TF1", sys.executable, (2, 21), {t for t in vars(Programs) if t.startswith("test_")} - QUICK)
for path in map(os.path.abspath, os.environ.get("TENSORFLOWS", "").split()):
    number = release_of(path)
    add("TF1[%d.%d]" % number, path, number, unsuited(number))
