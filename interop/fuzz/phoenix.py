"""TensorFlow's answers to cases, in a process of its own: python -m interop.fuzz.phoenix FD

Requests are read from standard input and answers written to the file descriptor, both as `read` and `write` have them. TensorFlow
is imported once, and a child of the process that has it answers; when a case ends the child, or holds it for too long, the
next child is there in a moment and goes on with the next request."""
import os
import pickle
import signal
import struct
import sys

SECONDS, WAIT = 5, 20  # of the processors, and of the clock, that a case may take


def write(fd, value):
    data = pickle.dumps(value)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(fd, data):]


def read(fd):
    """Reads what write has written, and not a byte more: the rest is for the next child."""
    return pickle.loads(_exactly(fd, struct.unpack("<Q", _exactly(fd, 8))[0]))


def _exactly(fd, size):
    parts = []
    while size:
        part = os.read(fd, size)
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def main():
    from interop.fuzz import direct  # noqa: F401: for the children
    out, child = int(sys.argv[1]), 0

    def end(*_):
        if child:
            os.kill(child, signal.SIGKILL)
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    while True:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            serve(out)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return  # there are no more requests
        hangs = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM)
        write(out, ("hangs" if hangs else "died", ""))


def first():
    from tensorflow.core.framework import graph_pb2, types_pb2
    graph = graph_pb2.GraphDef()
    node = graph.node.add(name="first", op="Const")
    node.attr["dtype"].type = types_pb2.DT_FLOAT
    node.attr["value"].tensor.dtype = types_pb2.DT_FLOAT
    return graph


def serve(out):
    """Answers requests until there are none: "ok" and the outputs, or the number of a code and a text."""
    from interop.fuzz import direct
    options = direct.options()
    direct.run(options, first().SerializeToString(), {}, ["first:0"])  # what is done once takes its time
    while True:
        try:
            request = read(0)
        except EOFError:
            os._exit(0)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(WAIT)
        try:
            answer = "ok", direct.run(options, *request)
        except direct.Failure as e:
            answer = e.code, e.text
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        write(out, answer)


if __name__ == "__main__":
    main()
