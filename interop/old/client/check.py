"""What the graphs share: the tasks of the cluster, sessions on them, and the list of graphs.

The modules graphs_*.py run under Python 2.7 to 3.7 and TensorFlow 0.12 to 1.15.
"""

from __future__ import print_function

import collections

import numpy as np
import tensorflow as tf

GRAPHS = collections.OrderedDict()
STEP_SECONDS = 10


class Skip(Exception):
    """This TensorFlow lacks a part of the Python API that a graph is made of."""


class Tasks(object):
    """The tasks of a cluster, or this process: names of devices and sessions."""

    def __init__(self, target="", other="", ps="", w0="", w1=""):
        self.target, self.other = target, other
        self.ps, self.w0, self.w1 = ps, w0, w1

    def session(self, target=None, **config):
        config.setdefault("operation_timeout_in_ms", STEP_SECONDS * 1000)
        return tf.Session(
            self.target if target is None else target, config=tf.ConfigProto(**config)
        )


HERE = Tasks()


def cluster(target, other):
    """Returns the tasks ps 0, worker 0 (served at target) and worker 1 (at other)."""
    return Tasks(target, other, "/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1")


def box(name):
    """Returns the container of a graph, whose name must have no underscores."""
    return name.replace("_", ".")


def graph(f):
    """Adds a graph that checks itself: f(tasks) builds and runs it."""
    GRAPHS[f.__name__] = f
    return f


def same(steps=1):
    """Adds a graph whose results on a cluster must equal those of a session in this process.

    f(tasks) returns (fetches, feed, targets): the targets are run before each of the steps.
    """

    def add(f):
        def compare(tasks):
            results = []
            for where in (tasks, HERE):
                with tf.Graph().as_default() as g, g.container(box(f.__name__)):
                    tf.set_random_seed(3)
                    fetches, feed, targets = f(where)
                    begin = [tf.global_variables_initializer(), tf.local_variables_initializer()]
                    with where.session(allow_soft_placement=where is HERE) as s:
                        s.run(begin)
                        found = []
                        for _ in range(steps):
                            if targets:
                                s.run(targets, feed)
                            found.append(s.run(fetches, feed))
                    results.append(found)
            equal(*results)

        compare.__name__ = f.__name__
        GRAPHS[f.__name__] = compare
        return f

    return add


def equal(got, want):
    """Compares arrays, strings, and lists of them."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want), "%d results, want %d" % (len(got), len(want))
        for g, w in zip(got, want):
            equal(g, w)
    elif isinstance(want, bytes) or np.asarray(want).dtype.kind in "OSUb":
        assert np.array_equal(got, want), "%r, want %r" % (got, want)
    else:
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=1e-5)


def fails(kind, call, *texts):
    """Checks that a call fails with an error of a kind whose text has all the given ones."""
    try:
        call()
    except kind as e:
        for text in texts:
            assert text in str(e), "no %r in %s" % (text, str(e)[:400])
        return e
    raise AssertionError("no %s" % kind.__name__)


def need(*names):
    """Returns the value of a dotted name below tf, or a list. Skips the graph without them."""
    values = []
    for name in names:
        value = tf
        for part in name.split("."):
            if not hasattr(value, part):
                raise Skip("tf." + name)
            value = getattr(value, part)
        values.append(value)
    return values[0] if len(values) == 1 else values


def release():
    """Returns the release as numbers: (1, 4)."""
    return tuple(int(n) for n in tf.__version__.split(".")[:2])


def join(values, axis):
    """tf.concat, whose arguments changed places in 1.0."""
    return tf.concat(axis, values) if release() < (1, 0) else tf.concat(values, axis)


def cell(size):
    """Returns a basic LSTM cell."""
    cells = tf.nn.rnn_cell if hasattr(tf.nn, "rnn_cell") else tf.contrib.rnn
    return cells.BasicLSTMCell(size)


def values(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)
