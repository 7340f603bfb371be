"""Client processes that work concurrently."""

import multiprocessing
import os


class Clients:
    """Processes with TensorFlow loaded, started on first use."""

    def __init__(self):
        self.pipes, self.processes = [], []

    def run(self, count, function, *args):
        """Calls function(index, *args), a generator, in count processes.

        Returns the last value that each yields. All processes wait for each other at every yield.
        """
        while len(self.pipes) < count:
            self.start()
        pipes = self.pipes[:count]
        for i, pipe in enumerate(pipes):
            pipe.send((function, (i, *args)))
        last = [None] * count
        try:
            while True:
                answers = [pipe.recv() for pipe in pipes]
                for ended, value in answers:
                    if ended and value is not None:
                        raise RuntimeError("a client failed: " + value)
                if all(ended for ended, _ in answers):
                    return last
                last = [value for _, value in answers]
                for pipe in pipes:
                    pipe.send(None)
        except Exception:
            self.close()
            raise

    def start(self):
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=serve, args=(there,), daemon=True)
        process.start()
        there.close()
        self.pipes.append(here)
        self.processes.append(process)

    def close(self):
        for process in self.processes:
            process.kill()
        for process in self.processes:
            process.join()
        self.pipes, self.processes = [], []


def silence():
    """Discards stderr, where TensorFlow logs its build options at every log level.

    Errors are sent over the pipe.
    """
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def serve(pipe):
    """Runs the generators that the parent sends."""
    silence()
    import tensorflow.compat.v1 as tf

    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    while True:
        function, args = pipe.recv()
        try:
            for value in function(*args):
                pipe.send((False, value))
                pipe.recv()
            pipe.send((True, None))
        except Exception as e:  # the parent reports any error
            pipe.send((True, repr(e)))
