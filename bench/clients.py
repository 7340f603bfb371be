"""Clients of a training cluster, each in a process of its own that lives through the whole run."""
import multiprocessing
import os
import time

HIDDEN = (100, 512)
BATCH = 100
WARM_UP = 30


class Clients:
    """Between-graph training with one client process per worker, reused for every cluster."""

    def __init__(self, count):
        context = multiprocessing.get_context("spawn")
        self.barrier = context.Barrier(count)
        self.pipes, self.processes = [], []
        for i in range(count):
            here, there = context.Pipe()
            self.pipes.append(here)
            self.processes.append(context.Process(target=serve, args=(i, there, self.barrier), daemon=True))
        for process in self.processes:
            process.start()

    def train(self, cluster, hidden, steps):
        """Trains with every client at once; returns the steps per second of all together."""
        for pipe in self.pipes:
            pipe.send((cluster.spec, hidden, steps))
        spans = [pipe.recv() for pipe in self.pipes]
        for span in spans:
            if isinstance(span, str):
                raise RuntimeError("a training client failed: " + span)
        return steps * len(spans) / (max(end for _, end in spans) - min(start for start, _ in spans))

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for process in self.processes:
            process.join()


def serve(index, pipe, barrier):
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    while (job := pipe.recv()) is not None:
        try:
            pipe.send(train(index, barrier, *job))
        except Exception as e:
            barrier.abort()
            pipe.send(repr(e))


def train(index, barrier, spec, hidden, steps):
    """Trains the MLP through one worker; returns when its timed steps began and ended."""
    import numpy as np
    import tensorflow.compat.v1 as tf
    tf.logging.set_verbosity(tf.logging.ERROR)
    tf.disable_v2_behavior()
    rng = np.random.RandomState(index)
    images = rng.rand(20, BATCH, 784).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.randint(0, 10, (20, BATCH))]
    worker = f"/job:worker/task:{index}"
    with tf.Graph().as_default():
        with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(spec))):
            x, y, step, train_op = network(tf, hidden)
            init = tf.global_variables_initializer()
        # A server that does not answer ends the run with an error that says so.
        config = tf.ConfigProto(device_filters=["/job:ps", worker], operation_timeout_in_ms=120_000)
        with tf.Session("grpc://" + spec["worker"][index], config=config) as sess:
            if index == 0:
                sess.run(init)
            barrier.wait(120)
            for i in range(WARM_UP + steps):
                if i == WARM_UP:
                    barrier.wait(120)
                    start = time.monotonic()
                sess.run([train_op, step], {x: images[i % 20], y: labels[i % 20]})
            return start, time.monotonic()


def network(tf, hidden):
    """The 784-hidden-10 perceptron of the tutorials with Adam; a name of its own per size keeps their variables apart."""
    with tf.variable_scope(f"mlp_{hidden}"):
        step = tf.get_variable("step", [], tf.int64, tf.zeros_initializer(), trainable=False)
        x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
        w1 = tf.get_variable("w1", [784, hidden], initializer=tf.truncated_normal_initializer(stddev=1 / 28))
        b1 = tf.get_variable("b1", [hidden], initializer=tf.zeros_initializer())
        w2 = tf.get_variable("w2", [hidden, 10], initializer=tf.truncated_normal_initializer(stddev=hidden**-0.5))
        b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2, b2)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    return x, y, step, tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
