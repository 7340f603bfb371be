"""The programs of tutorials of the time: where each is run, and what it must do."""

import json
import os
import pathlib
import shlex

from interop.cluster import BINARY
from interop.old import data
from interop.old.processes import Failed
from interop.old.programs import Program

PROGRAMS = []


def program(case):
    PROGRAMS.append(case())
    return case


@program
class Hello(Program):
    """The first session on a server, typed; two tasks of one job."""

    file, client, typed = "hello.py", True, True
    jobs = {"ps": 2}
    quick = [("0.12", "all"), ("0.12", "ps"), ("0.12", "master")]

    def masters(self):
        return [("ps", 0)]

    def addresses(self, run):
        return {"localhost:2222": run.spec["ps"][0]}

    def check(self, run):
        run.require("'Hello, distributed TensorFlow!'")


@program
class HelloFromItsServer(Hello):
    """The same with a server of a cluster of its own."""

    file, client = "hello_local.py", False
    jobs, layouts = {"local": 1}, ["tf", "all"]
    quick = [("1.4", "all")]

    def masters(self):
        return [("local", 0)]

    def addresses(self, run):
        return {}

    def target(self, run):
        return "grpc://" + run.spec["local"][0] if run.layout == "all" else ""


@program
class HelloByCommandLine(Hello):
    """Servers started with the tutorial's command line: task_id, and two lists of tasks."""

    layouts = ["all"]
    jobs = {"ps": 2, "wk": 2}
    quick = [("0.12", "all")]

    def prepare(self, run):
        name = os.path.join(run.folder, "grpc_tensorflow_server")
        if not os.path.exists(name):
            os.symlink(pathlib.Path(BINARY).resolve(), name)
        ps, wk = (";".join(run.spec[job]) for job in ("ps", "wk"))
        run.server = f"{shlex.quote(name)} --cluster_spec='ps|{ps}','wk|{wk}'" + (
            " --job_name={job} --task_id={task}"
        )


@program
class MatMul(Program):
    """A product of matrices on /cpu:0, with the placement in the log."""

    file, client, typed = "matmul.py", True, True
    jobs, layouts = {"local": 1}, ["tf", "all"]
    quick = [("1.15", "all")]

    def target(self, run):
        return "grpc://" + run.spec["local"][0]

    def check(self, run):
        run.require(r"\[ ?22\., +28\.\],\s+\[ ?49\., +64\.\]")


@program
class APlusB(Program):
    """Variables on two devices of a parameter server that has one."""

    file, client = "a_plus_b.py", True
    quick = [("0.12", "ps"), ("0.12", "master"), ("1.4", "ps"), ("1.15", "master")]

    def addresses(self, run):
        return {"localhost:22223": run.spec["worker"][0]}

    def check(self, run):
        run.require(r"(?m)^2$")


@program
class PinnedLayers(Program):
    """Layers on two parameter servers and on worker 7, for 10000 steps."""

    file, client = "pinned_layers.py", True
    jobs = {"ps": 2, "worker": 8}
    quick = [("1.15", "all")]

    def masters(self):
        return [("worker", 7)]

    def addresses(self, run):
        return {"worker7:2222": run.spec["worker"][7]}

    def check(self, run):
        run.require_fall(r"loss ([\d.]+)", 0.5)


@program
class Towers(Program):
    """In-graph replication: one graph, a client thread for each worker."""

    file, client = "towers.py", True
    quick = [("1.4", "all"), ("1.15", "ps")]

    def masters(self):
        return [("worker", 0)]

    def addresses(self, run):
        return {"localhost:2222": run.spec["worker"][0]}

    def arguments(self, run, job, task):
        return [2, 100]

    def check(self, run):
        run.require(r"count 200 error 0\.[01]")


@program
class SharedContainer(Program):
    """Between-graph replication: a graph and a session for each worker, one container."""

    file, client = "shared_container.py", True
    quick = [("0.12", "all"), ("1.4", "master")]

    def arguments(self, run, job, task):
        return [",".join("grpc://" + host for host in run.spec["worker"]), 100]

    def check(self, run):
        run.require_fall(r"loss ([\d.]+)", 0.2)


def host_flags(run, job, task):
    return [
        "--ps_hosts=" + run.hosts("ps"),
        "--worker_hosts=" + run.hosts("worker"),
        "--job_name=" + job,
        "--task_index=%d" % task,
    ]


@program
class MLP(Program):
    """mlp_mnist_dist.py: a perceptron, Supervisor, one graph for each worker."""

    file, jobs = "mlp_mnist_dist.py", {"ps": 2, "worker": 2}
    quick = [("0.12", "ps"), ("1.15", "master")]

    def prepare(self, run):
        data.mnist(os.path.join(run.folder, "MNIST_data"))

    def arguments(self, run, job, task):
        return host_flags(run, job, task)

    def check(self, run):
        run.require("Extracting ./MNIST_data/train-images-idx3-ubyte.gz")
        run.require(r"job : worker/0 step : \d+ ,training accuracy : [\d.]+")
        for task in range(2):
            (accuracy,) = run.numbers(r"test accuracy : ([\d.]+)", f"worker-{task}")
            if accuracy < 0.9:
                raise Failed(f"the accuracy of worker {task} is {accuracy}")
        run.require_files("logs/checkpoint", "logs/graph.pbtxt")


@program
class SyncReplicas(Program):
    """SyncReplicasOptimizer, MonitoredTrainingSession, and two ways to a SavedModel."""

    file, jobs = "sync_replicas.py", {"master": 1, "ps": 1, "worker": 1}
    releases = ["1.4", "1.8", "1.12", "1.15"]
    ready, grace = "graph built", 3
    # The session of their own master does not close while the thread of the queue waits.
    left_out = [(r, where) for r in ("1.12", "1.15") for where in ("tf", "ps")]
    quick = [("1.4", "ps"), ("1.4", "master"), ("1.15", "all")]

    def arguments(self, run, job, task):
        return ["--cluster=" + json.dumps(run.spec), "--job_name=" + job]

    def awaited(self, run):
        return [("master", 0)]  # the worker may still wait for a token

    def check(self, run):
        run.require_fall(r"step \d+ loss ([\d.]+)", 0.5)
        run.require("graph built", "worker-0")  # the chief may make all steps alone
        run.require_files("ckpt/model.ckpt-60.index", "saved/saved_model.pb")
        run.require_files("saved_by_hook/saved_model.pb", "saved_by_hook/variables/*.index")
        guesses = [
            run.numbers(rf"{folder} guess ([-\d.]+)") for folder in ("saved", "saved_by_hook")
        ]
        if len(guesses[0]) != 1 or guesses[0] != guesses[1]:
            raise Failed(f"the two models guess {guesses}")


@program
class Monitored(Program):
    """MonitoredTrainingSession with StopAtStepHook and checkpoints, asynchronous."""

    file = "monitored.py"
    ready = "ready"
    quick = [("0.12", "master"), ("1.4", "ps"), ("1.15", "ps")]

    def arguments(self, run, job, task):
        return host_flags(run, job, task)

    def check(self, run):
        logs = ["worker-0", "worker-1"]
        loss = r"step \d+ loss ([\d.]+)"
        longest = max(logs, key=lambda n: len(run.numbers(loss, n)))
        run.require_fall(loss, 0.8, longest)
        for name in logs:
            run.require("(?m)^done", name)
        run.require_files("train/checkpoint", "train/model.ckpt-*.index", "train/events.*")


@program
class CIFAR10(Program):
    """Towers of a convolutional network on the workers, whose mean gradients are applied."""

    file, client = "cifar10.py", True
    quick = [("0.12", "master"), ("1.4", "ps"), ("1.15", "all")]

    def masters(self):
        return [("worker", 0)]

    def prepare(self, run):
        data.cifar10(os.path.join(run.folder, "cifar-10-batches-bin"))

    def arguments(self, run, job, task):
        return ["grpc://" + run.spec["worker"][0], 2, 150]

    def check(self, run):
        run.require_fall(r"step \d+, loss = ([\d.]+)", 0.8)
        run.require("(?m)^done")
        run.require_files("train/model.ckpt-150.*", "train/events.*")
