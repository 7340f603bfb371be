"""launch.py PROGRAM ARGUMENT...: runs a program, with addresses and servers from outside.

WEFT_ADDRESSES maps addresses in the program's text ("localhost:2222") to those of the cluster.
WEFT_TARGET is the target of sessions that have none.
WEFT_RUNNING=1 replaces tf.train.Server: its target is the server of the same task, which runs
already. A program that starts a server in its process becomes a client of a running one.
WEFT_GRACE is the time in seconds that a MonitoredTrainingSession gives its threads to end, instead
of 120 by default. A chief with a queue runner of its own takes all of it.
WEFT_TYPED=1 runs the lines as if they were typed, so that values are printed.
"""

import json
import os
import runpy
import sys
import time

import tensorflow as tf
from tensorflow.python.client import session
from tensorflow.python.training import monitored_session, server_lib

ADDRESSES = json.loads(os.environ.get("WEFT_ADDRESSES", "{}"))
TARGET = os.environ.get("WEFT_TARGET", "")


class RunningServer(object):
    """A tf.train.Server that is served by another process."""

    def __init__(self, server_or_cluster_def, job_name=None, task_index=None, **ignored):
        given = server_or_cluster_def
        if hasattr(given, "cluster"):  # a ServerDef
            job_name = given.job_name if job_name is None else job_name
            task_index = given.task_index if task_index is None else task_index
            given = given.cluster
        tasks = server_lib.ClusterSpec(given).as_dict()[job_name]
        self.target = "grpc://" + tasks[task_index or 0]

    @staticmethod
    def create_local_server(config=None, start=True):
        server = RunningServer.__new__(RunningServer)
        server.target = TARGET
        return server

    def start(self):
        pass

    def join(self):
        while True:
            time.sleep(60)


def redirect(kind):
    """Makes sessions of a kind use the addresses of the cluster."""
    begin = kind.__init__

    def init(self, target="", *args, **kwargs):
        target = target or TARGET
        host = target[len("grpc://") :]
        if host in ADDRESSES:
            target = "grpc://" + ADDRESSES[host]
        begin(self, target, *args, **kwargs)

    kind.__init__ = init


def shorten(seconds):
    """Sets how long MonitoredTrainingSession waits for threads by default."""
    code = monitored_session.MonitoredTrainingSession.__code__
    defaults = list(monitored_session.MonitoredTrainingSession.__defaults__)
    names = code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]
    defaults[names.index("stop_grace_period_secs")] = seconds
    monitored_session.MonitoredTrainingSession.__defaults__ = tuple(defaults)


def typed(path):
    """Runs a file as an interactive interpreter does."""
    import code

    console = code.InteractiveConsole({"__name__": "__main__"})
    console.raw_input = lambda prompt, lines=iter(open(path).read().split("\n")): next_line(lines)
    console.interact("")


def next_line(lines):
    for line in lines:
        return line
    raise EOFError


def main():
    if os.environ.get("WEFT_RUNNING") == "1":
        server_lib.Server = tf.train.Server = RunningServer
    redirect(session.BaseSession)
    if os.environ.get("WEFT_GRACE"):
        shorten(int(os.environ["WEFT_GRACE"]))
    path = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    if os.environ.get("WEFT_TYPED") == "1":
        typed(path)
    else:
        runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    main()
