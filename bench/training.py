"""Training between graphs: a Python client for every worker, variables on parameter servers."""
import contextlib
import sys
import time

from bench.rows import Group, Row

WARM_UP = 20
CLUSTERS = (1, 2), (2, 4)  # tasks of ps and worker
HIDDEN = {100: 300, 512: 150, 2048: 40}  # timed steps of each worker, by hidden units
WORD2VEC = 300  # the first hundred are slower on some hosts (docs/performance.md, Garbage)


def train(index, spec, model, size, synchronous, steps):
    """One client of a training cluster; yields when its timed steps began and ended, and how many they were."""
    import numpy as np
    import tensorflow.compat.v1 as tf

    workers, chief = len(spec["worker"]), index == 0
    worker = f"/job:worker/task:{index}"
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(spec))):
            global_step = tf.train.get_or_create_global_step()
            loss, optimizer, feeds = model_of(model)(tf, np, np.random.RandomState(index), size, len(spec["ps"]))
            if synchronous:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            train_op = optimizer.minimize(loss, global_step=global_step)
        init = tf.global_variables_initializer()
        # A server that does not answer ends the measurement with an error that says so.
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
    """The chief's steps: their beginning, their end, and how many all workers made with it meanwhile."""
    run(WARM_UP)
    before, start = sess.run(global_step), time.monotonic()
    run(steps)
    end = time.monotonic()
    return start, end, int(sess.run(global_step) - before) * workers


def follow(tf, run):
    """The steps of another worker, until the chief takes no more gradients. Their number is not given: a worker that is
    quick takes the token of one that is slow, who then has to make fewer."""
    try:
        run(sys.maxsize)
    except tf.errors.OutOfRangeError:
        pass


def model_of(name):
    from bench import models

    return models.MODELS[name]


class Synchronous:
    """What SyncReplicasOptimizer's hook does, without the rest of a monitored session."""

    def __init__(self, tf, optimizer, chief):
        self.tf, self.chief, self.local = tf, chief, optimizer.local_step_init_op
        if chief:
            self.local = optimizer.chief_init_op
            # Without tokens at the start no worker gets ahead, so that no gradient is late.
            self.tokens, self.runner = optimizer.get_init_tokens_op(num_tokens=0), optimizer.get_chief_queue_runner()

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
    spans = [span for span in side.fleet.run(workers, train, c.spec, model, size, synchronous, steps) if span]
    for task in range(ps):
        tf.Session.reset(c.target("ps", task))
    return sum(done for *_, done in spans) / (max(end for _, end, _ in spans) - min(start for start, *_ in spans))


def group(tasks, how, model, size, synchronous, steps):
    """One case in a group of its own: one that hangs does not take others along."""
    name = f"{how}, {'SyncReplicas' if synchronous else 'asynchronous'}, {tasks[0]} ps, {tasks[1]} workers"
    row = Row(name, "steps/s", "higher", 1.5, headline=tasks == CLUSTERS[0] or size == 512)
    return Group("training " + name.replace(",", ""), [row], lambda side: {name: measure(side, tasks, model, size, synchronous, steps)}, rounds=3, limit=120)


def all_groups():
    for tasks in CLUSTERS:
        for synchronous in (False, True):
            for hidden, steps in HIDDEN.items():
                yield group(tasks, f"MLP of {hidden}", "perceptron", hidden, synchronous, steps)
        yield group(tasks, "word2vec", "word2vec", 0, False, WORD2VEC)


GROUPS = list(all_groups())
