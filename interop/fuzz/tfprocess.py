"""A process that runs cases in TensorFlow: python -m interop.fuzz.tfprocess FD

Requests are read from standard input, and outcomes are written to the file descriptor, in the
format of read and write. The process imports TensorFlow and forks a child that handles requests. If
a case crashes or blocks the child, the process forks another one, which handles the next request.
"""

import os
import pickle
import signal
import struct
import sys

CPU_LIMIT, TIME_LIMIT = 5, 20  # limits of a case: seconds of CPU time and of elapsed time


def write(fd, value):
    data = pickle.dumps(value)
    data = struct.pack("<Q", len(data)) + data
    while data:
        data = data[os.write(fd, data) :]


def read(fd):
    """Reads one value of write and no further bytes, which are for the next child."""
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
            return  # end of the requests
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
    """Handles all requests. An outcome is "ok" and the outputs, or an error code and its text."""
    from interop.fuzz import capi

    options = capi.options()
    capi.run(
        options, first().SerializeToString(), {}, ["first:0"]
    )  # one-time initialization is slow
    while True:
        try:
            request = read(0)
        except EOFError:
            os._exit(0)
        signal.setitimer(signal.ITIMER_PROF, CPU_LIMIT)
        signal.alarm(TIME_LIMIT)
        try:
            answer = "ok", capi.run(options, *request)
        except capi.Failure as e:
            answer = e.code, e.text
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        write(out, answer)


if __name__ == "__main__":
    main()
