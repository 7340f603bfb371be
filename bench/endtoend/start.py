"""The time from exec to the first response, and the size of the program."""

import importlib.util
import pathlib
import socket
import time

from bench.rows import Group, Row
from interop import cluster

HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(
    [0, 0, 0, 4, 0, 0, 0, 0, 0]
)  # a client's first bytes


def serving(side):
    """Measures the time from exec to the server's first bytes."""
    c = side.fresh({"local": 1})
    host, port = c.spec["local"][0].split(":")
    start = time.monotonic()
    with c, socket.create_connection((host, int(port)), 30) as s:
        s.sendall(HTTP2)
        if not s.recv(1):
            raise RuntimeError("the server closed the connection")
        return {"exec to serving": 1e3 * (time.monotonic() - start)}


def first_step(side):
    """Measures the time from exec to the result of the first step, with a running client."""
    import tensorflow.compat.v1 as tf

    with tf.Graph().as_default():
        hello = tf.constant("hello")
        start = time.monotonic()
        c = side.fresh({"local": 1})
        with c, tf.Session(c.target("local")) as sess:
            sess.run(hello)
            return {"exec to first step": 1e3 * (time.monotonic() - start)}


def size(side):
    """Measures the size of the program: one binary, or TensorFlow's shared libraries."""
    if side.server == cluster.TENSORFLOW:
        package = pathlib.Path(importlib.util.find_spec("tensorflow").origin).parent
        total = sum(f.stat().st_size for f in package.rglob("*.so*") if not f.is_symlink())
    else:
        total = pathlib.Path(side.server.split()[0].strip("'")).stat().st_size
    return {"program on disk": total / 1e6}


GROUPS = [
    Group(
        "start",
        [
            Row("exec to serving", "ms", bound=20, headline=True),
            Row("exec to first step", "ms", bound=50, headline=True),
        ],
        lambda side: serving(side) | first_step(side),
    ),
    Group("size", [Row("program on disk", "MB", bound=40, headline=True)], size, rounds=1),
]
