"""Client processes that work at the same time."""
import multiprocessing
import os


class Fleet:
    """Processes with TensorFlow loaded, started when they are needed for the first time."""

    def __init__(self):
        self.pipes, self.processes = [], []

    def run(self, count, function, *args):
        """Calls function(index, *args), a generator, in count processes, and returns what the last yield of each was.

        Between two yields all work at the same time: none goes on before all have come as far.
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
    """Throws away what TensorFlow logs: it says how it was built even if it is asked to be quiet. Errors come by pipe."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def serve(pipe):
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
        except Exception as e:  # of any kind: the parent tells
            pipe.send((True, repr(e)))
