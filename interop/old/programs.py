"""Programs of old releases, run as they were written, with servers of Weft and of their TensorFlow.

| layout | tasks that are masters of sessions | the other tasks      |
| tf     | TensorFlow                         | TensorFlow           |
| ps     | TensorFlow                         | Weft                 |
| master | Weft                               | TensorFlow           |
| all    | Weft                               | Weft                 |

A program that starts a tf.train.Server does so for every task that TensorFlow serves. For the
others the program is a client of Weft's server (client/launch.py). A program that is only a client
finds its servers in every layout.
"""

import json
import pathlib
import re
import time

from interop.old.processes import CLIENT, Failed, Processes

PROGRAMS = pathlib.Path(__file__).resolve().parent / "programs"
LAYOUTS = ["tf", "ps", "master", "all"]


class Program:
    """A program and what it must do. Subclasses override what differs."""

    file = ""  # in programs/
    releases = ["0.12", "1.0", "1.4", "1.8", "1.12", "1.15"]
    layouts = LAYOUTS
    jobs = {"ps": 1, "worker": 2}
    cpus = 1
    client = False  # starts no server of its own
    typed = False  # run line by line, like typed
    grace = ""  # seconds that a MonitoredTrainingSession gives its threads to end
    left_out = []  # (release, layout) in which TensorFlow itself does not end
    quick = []  # (release, layout) that belong to the choice
    seconds = 240  # for the whole run, on a machine that is busy

    def addresses(self, run):
        """Returns the addresses in the program's text and what they are in this run."""
        return {}

    def target(self, run):
        """Returns the target of sessions that name none."""
        return ""

    def masters(self):
        """Returns the tasks that are masters of sessions."""
        return [(j, t) for j, n in self.jobs.items() for t in range(n) if j != "ps"]

    def prepare(self, run):
        """Makes the files that the program reads."""

    def arguments(self, run, job, task):
        """Returns the arguments of the program for a task."""
        return []

    def started(self, run):
        """Returns the tasks for which the program is started, the chief first."""
        return [("client", 0)] if self.client else [(j, t) for j, t in run.tasks if j != "ps"]

    def awaited(self, run):
        """Returns the tasks whose program must end by itself. The others are stopped."""
        return self.started(run)

    ready = ""  # what the chief's log must show before the other programs start

    def check(self, run):
        """Raises Failed unless the logs and files are as they must be."""
        raise NotImplementedError


class Run(Processes):
    """One run of a program."""

    def __init__(self, program, layout, release, python, folder, server):
        super().__init__(folder, python, program.jobs, server, program.cpus)
        self.program, self.layout, self.release = program, layout, release
        self.tasks = [(j, t) for j, n in program.jobs.items() for t in range(n)]

    def weft_serves(self, task):
        master = task in self.program.masters()
        return {"tf": False, "ps": not master, "master": master, "all": True}[self.layout]

    def go(self):
        p = self.program
        p.prepare(self)
        end = time.monotonic() + p.seconds
        for job, task in self.tasks:
            if self.weft_serves((job, task)) or p.client:
                self.start_server(job, task, self.weft_serves((job, task)))
            elif job == "ps":
                self.start_program(job, task)
        for k, (job, task) in enumerate(p.started(self)):
            if k == 1 and p.ready:
                self.wait_for(lambda: re.search(p.ready, self.log(self.chief())), end)
            self.start_program(job, task)
        awaited = [f"{j}-{t}" for j, t in p.awaited(self)]
        self.wait_for(lambda: all(self.running[n].poll() == 0 for n in awaited), end)
        p.check(self)

    def chief(self):
        return "%s-%d" % self.program.started(self)[0]

    def start_program(self, job, task):
        p = self.program
        command = [self.python, str(CLIENT / "launch.py"), str(PROGRAMS / p.file)]
        self.start(
            f"{job}-{task}",
            command + [str(a) for a in p.arguments(self, job, task)],
            WEFT_RUNNING="1" if self.weft_serves((job, task)) or self.layout == "all" else "",
            WEFT_GRACE=str(p.grace),
            WEFT_TYPED="1" if p.typed else "",
            WEFT_ADDRESSES=json.dumps(p.addresses(self)),
            WEFT_TARGET=p.target(self),
        )

    def wait_for(self, condition, end):
        """Waits until a condition holds. Fails if a process fails, or at the end."""
        while not condition():
            for name, process in self.running.items():
                if process.poll():
                    why = self.last_words(name)
                    raise Failed(f"{name} ended with {process.returncode}: {why}")
            self.check_servers()
            if time.monotonic() > end:
                waiting = [n for n, process in self.running.items() if process.poll() is None]
                waiting = [n for n in waiting if not n.startswith("server-")] or [self.chief()]
                raise Failed(f"not done: {waiting[0]}: {self.last_words(waiting[0])}")
            time.sleep(0.05)

    # What checks use.

    def hosts(self, job):
        return ",".join(self.spec[job])

    def output(self, name=None):
        return self.log(name or self.chief())

    def numbers(self, pattern, name=None):
        """Returns the numbers that the group of a pattern matched in a log."""
        return [float(n) for n in re.findall(pattern, self.output(name))]

    def require(self, pattern, name=None):
        if not re.search(pattern, self.output(name)):
            raise Failed(f"no {pattern!r} in {name or self.chief()}: {self.output(name)[-300:]}")

    def require_fall(self, pattern, factor, name=None):
        """The last numbers that a pattern matches are below the first by a factor."""
        found = self.numbers(pattern, name)
        part = max(1, len(found) // 5)
        if len(found) < 2 or not sum(found[-part:]) < factor * sum(found[:part]):
            raise Failed(f"{pattern!r} does not fall by {factor}: {found[:4]} to {found[-4:]}")

    def require_files(self, *names):
        for name in names:
            if not list(pathlib.Path(self.folder).glob(name)):
                raise Failed(f"no file {name}")
