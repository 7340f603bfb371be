"""The process that measures. It is ended, with all that it has started, when a measurement takes too long."""
import contextlib
import multiprocessing
import os
import signal

from bench import fleet, rows

START = 120  # seconds until a new process has loaded TensorFlow, on a busy machine


class Measurer:
    """Calls the measurements of groups in a process of their own."""

    def __init__(self, groups, servers, quick):
        self.args = [g.name for g in groups], servers, quick
        self.process = self.pipe = None

    def measure(self, group, side):
        """Returns {row: number}, or a text that says why there are no numbers."""
        if self.process is None:
            self.start()
        self.pipe.send((group.name, side))
        try:
            if self.pipe.poll(group.limit):
                return self.pipe.recv()
            why = f"not done after {group.limit:.0f} s"
        except EOFError:
            why = "the measuring process has ended"
        self.kill()
        return why

    def release(self):
        """Ends the clusters of a group."""
        if self.process is not None:
            self.pipe.send(None)
            if not self.pipe.poll(START):
                self.kill()
            else:
                self.pipe.recv()

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.process = context.Process(target=serve, args=(there, *self.args))
        self.process.start()
        there.close()
        if not self.pipe.poll(START):
            self.kill()
            raise RuntimeError("the measuring process does not start")
        self.pipe.recv()

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.join()
        self.process = None

    def close(self):
        if self.process is not None:
            self.kill()


def serve(pipe, names, servers, quick):
    """Answers requests for measurements until the pipe is closed."""
    os.setpgrp()  # so that whoever ends this process can end its children
    fleet.silence()
    import tensorflow.compat.v1 as tf

    from bench import run

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    groups = {g.name: g for g in run.groups() if g.name in names}
    clients = fleet.Fleet()
    sides = {name: rows.Side(name, server, quick, clients) for name, server in servers.items()}

    def release():
        for side in sides.values():
            side.release()

    pipe.send("ready")
    try:
        while True:
            request = pipe.recv()
            pipe.send(release() if request is None else attempt(groups[request[0]], sides[request[1]]))
    except (EOFError, BrokenPipeError):  # whoever asked has ended
        release()
        clients.close()


def attempt(group, side):
    try:
        return group.measure(side)
    except Exception as e:  # of any kind: the run goes on
        return f"{type(e).__name__}: {e}"
