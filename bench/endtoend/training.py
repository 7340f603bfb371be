"""Between-graph training: one Python client per worker, variables on parameter servers."""

import contextlib
import sys
import time

from bench.rows import Group, Row

WARM_UP = 20
CLUSTERS = (1, 2), (2, 4)  # numbers of ps and worker tasks
HIDDEN = {100: 300, 512: 150, 2048: 40}  # timed steps per worker, by number of hidden units
WORD2VEC = 300  # timed steps; the first 100 are slower on some hosts (docs/performance.md)


def train(index, spec, model, size, synchronous, steps):
    """Runs one client of a training cluster.

    The last value it yields is the start, the end and the number of its timed steps.
    """
    import numpy as np
    import tensorflow.compat.v1 as tf

    workers, chief = len(spec["worker"]), index == 0
    worker = f"/job:worker/task:{index}"
    with tf.Graph().as_default():
        with tf.device(
            tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(spec))
        ):
            global_step = tf.train.get_or_create_global_step()
            loss, optimizer, feeds = model_of(model)(
                tf, np, np.random.RandomState(index), size, len(spec["ps"])
            )
            if synchronous:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            train_op = optimizer.minimize(loss, global_step=global_step)
        init = tf.global_variables_initializer()
        # With the timeout, a server that hangs fails the measurement.
        config = tf.ConfigProto(device_filters=["/job:ps", worker], operation_timeout_in_ms=60_000)
        with tf.Session("grpc://" + spec["worker"][index], config=config) as sess:
            if chief:
                sess.run(init)
            yield

            def run(count):
                for i in range(count):
                    sess.run([train_op, global_step], feeds(i))

            if not synchronous:
                run(WARM_UP)
                yield
                start = time.monotonic()
                run(steps)
                yield start, time.monotonic(), steps
                return
            with Synchronous(tf, optimizer, chief)(sess):
                yield
                span = lead(sess, run, global_step, steps, workers) if chief else follow(tf, run)
            yield span


def lead(sess, run, global_step, steps, workers):
    """Runs the chief's steps. Returns their start, their end, and the steps of all workers."""
    run(WARM_UP)
    before, start = sess.run(global_step), time.monotonic()
    run(steps)
    end = time.monotonic()
    return start, end, int(sess.run(global_step) - before) * workers


def follow(tf, run):
    """Runs the steps of another worker until the chief stops taking gradients.

    Their number is not fixed, because a fast worker takes tokens of a slow one, which then runs
    fewer steps.
    """
    try:
        run(sys.maxsize)
    except tf.errors.OutOfRangeError:
        pass


def model_of(name):
    from bench.endtoend import models

    return models.MODELS[name]


class Synchronous:
    """The work of SyncReplicasOptimizer's hook, without the rest of a monitored session."""

    def __init__(self, tf, optimizer, chief):
        self.tf, self.chief, self.local = tf, chief, optimizer.local_step_init_op
        if chief:
            self.local = optimizer.chief_init_op
            # Without initial tokens no worker gets ahead, so that no gradient is stale.
            self.tokens, self.runner = (
                optimizer.get_init_tokens_op(num_tokens=0),
                optimizer.get_chief_queue_runner(),
            )

    @contextlib.contextmanager
    def __call__(self, sess):
        sess.run(self.local)
        coordinator = self.tf.train.Coordinator()
        if self.chief:
            self.runner.create_threads(sess, coord=coordinator, daemon=True, start=True)
            sess.run(self.tokens)
        yield
        coordinator.request_stop()


def measure(side, tasks, model, size, synchronous, steps):
    import tensorflow.compat.v1 as tf

    ps, workers = tasks
    c = side.cluster({"ps": ps, "worker": workers})
    steps = side.count(steps)
    spans = [
        span
        for span in side.clients.run(workers, train, c.spec, model, size, synchronous, steps)
        if span
    ]
    for task in range(ps):
        tf.Session.reset(c.target("ps", task))
    return sum(done for *_, done in spans) / (
        max(end for _, end, _ in spans) - min(start for start, *_ in spans)
    )


def group(tasks, how, model, size, synchronous, steps):
    """Returns a group of one case, so that a case that hangs does not affect others."""
    name = f"{how}, {'SyncReplicas' if synchronous else 'asynchronous'}, {tasks[0]} ps, {tasks[1]} workers"
    row = Row(name, "steps/s", "higher", 1.5, headline=tasks == CLUSTERS[0] or size == 512)
    return Group(
        "training " + name.replace(",", ""),
        [row],
        lambda side: {name: measure(side, tasks, model, size, synchronous, steps)},
        rounds=3,
        limit=120,
    )


def all_groups():
    for tasks in CLUSTERS:
        for synchronous in (False, True):
            for hidden, steps in HIDDEN.items():
                yield group(tasks, f"MLP of {hidden}", "perceptron", hidden, synchronous, steps)
        yield group(tasks, "word2vec", "word2vec", 0, False, WORD2VEC)


GROUPS = list(all_groups())
