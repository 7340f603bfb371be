"""The process that measures. It is killed, with its children, if a measurement takes too long."""

import contextlib
import multiprocessing
import os
import signal

from bench import clients, rows
from bench.groups import groups

START = 120  # seconds for a new process to load TensorFlow, on a busy machine


class Measurer:
    """Calls the measurements of groups in a separate process."""

    def __init__(self, groups, servers, quick):
        self.args = [g.name for g in groups], servers, quick
        self.process = self.pipe = None

    def measure(self, group, side):
        """Returns {row: number}, or a text with the reason why there are no numbers."""
        if self.process is None:
            self.start()
        self.pipe.send((group.name, side))
        try:
            if self.pipe.poll(group.limit):
                return self.pipe.recv()
            why = f"not finished after {group.limit:.0f} s"
        except EOFError:
            why = "the measuring process exited"
        self.kill()
        return why

    def release(self):
        """Stops the clusters of a group."""
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
            raise RuntimeError("the measuring process did not start")
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
    """Handles measurement requests until the pipe is closed."""
    os.setpgrp()  # so that kill can end the children too
    clients.silence()
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    measured = {g.name: g for g in groups() if g.name in names}
    pool = clients.Clients()
    sides = {name: rows.Side(name, server, quick, pool) for name, server in servers.items()}

    def release():
        for side in sides.values():
            side.release()

    pipe.send("ready")
    try:
        while True:
            request = pipe.recv()
            pipe.send(
                release() if request is None else attempt(measured[request[0]], sides[request[1]])
            )
    except (EOFError, BrokenPipeError):  # the parent process exited
        release()
        pool.close()


def attempt(group, side):
    try:
        return group.measure(side)
    except Exception as e:  # the run continues after any error
        return f"{type(e).__name__}: {e}"
