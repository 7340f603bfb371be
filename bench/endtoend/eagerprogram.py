"""A program of TensorFlow 2 that measures, and prints its figures as JSON.

python -m bench.endtoend.eagerprogram CLUSTER_JSON remote|loop|keras COUNT
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from interop import cluster

WORKER, PS = "/job:worker/task:0", "/job:ps/task:0"
CHAIN = 50  # operations whose end is waited for once


def median(call, count):
    """Returns the median time of a call, in µs."""
    times = []
    for i in range(count + count // 10 + 2):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times[-count:]))


def remote(spec, count):
    tf.config.experimental_connect_to_cluster(tf.train.ClusterSpec(spec))
    with tf.device(WORKER):
        x = tf.ones([8, 8])
    with tf.device(PS):
        v = tf.Variable(tf.ones([8, 8]))
    plain = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, x) + 1.0))
    with_variable = tf.function(lambda x: tf.reduce_sum(tf.matmul(x, v)))

    def on_worker(f):
        def call():
            with tf.device(WORKER):
                return f(x).numpy()

        return call

    def chain(f):
        def call():
            with tf.device(WORKER):
                y = x
                for _ in range(CHAIN):
                    y = f(y)
            context.async_wait()

        return median(call, max(5, count // 10)) / CHAIN

    return {
        "operation": chain(lambda y: tf.matmul(y, x)),
        "function": chain(tf.function(lambda y: tf.matmul(y, y) * 0.1 + 1.0)),
        "operation and fetch": median(on_worker(lambda x: tf.matmul(x, x)), count),
        "function and fetch": median(on_worker(plain), count),
        "variable and fetch": median(on_worker(with_variable), count),
    }


def strategy(spec):
    spec = dict(spec, chief=[f"127.0.0.1:{cluster.free_ports(1)[0]}"])
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(spec), rpc_layer="grpc"
    )
    return tf.distribute.ParameterServerStrategy(resolver)


def loop(spec, count):
    """Trains four layers of 64 units with a coordinator."""
    s = strategy(spec)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(s)
    with s.scope():
        layers = [tf.Variable(tf.random.normal([64, 64], stddev=0.1)) for _ in range(4)]

    def dataset():
        return tf.data.Dataset.from_tensors((tf.ones([32, 64]), tf.ones([32, 64]))).repeat()

    iterator = iter(coordinator.create_per_worker_dataset(dataset))

    @tf.function
    def step(iterator):
        x, y = next(iterator)
        with tf.GradientTape() as tape:
            for w in layers:
                x = tf.nn.relu(tf.matmul(x, w))
            loss = tf.reduce_mean((x - y) ** 2)
        for w, gradient in zip(layers, tape.gradient(loss, layers), strict=True):
            w.assign_sub(0.01 * gradient)

    def run(steps):
        for _ in range(steps):
            coordinator.schedule(step, args=(iterator,))
        coordinator.join()

    run(max(10, count // 10))
    start = time.perf_counter()
    run(count)
    return {"rate": count / (time.perf_counter() - start)}


def keras(spec, count):
    """Trains an MLP with Keras."""
    import tf_keras

    s = strategy(spec)
    with s.scope():
        model = tf_keras.Sequential(
            [
                tf_keras.layers.Dense(128, activation="relu", input_shape=(64,)),
                tf_keras.layers.Dense(64, activation="relu"),
                tf_keras.layers.Dense(10),
            ]
        )
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("adam", loss=loss, metrics=["accuracy"])

    def dataset(_):
        return tf.data.Dataset.from_tensors((tf.ones([64, 64]), tf.zeros([64], tf.int64))).repeat()

    data = tf_keras.utils.experimental.DatasetCreator(dataset)
    model.fit(data, epochs=1, steps_per_epoch=max(10, count // 10), verbose=0)
    start = time.perf_counter()
    model.fit(data, epochs=1, steps_per_epoch=count, verbose=0)
    return {"rate": count / (time.perf_counter() - start)}


def main():
    spec, what, count = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    print(json.dumps({"remote": remote, "loop": loop, "keras": keras}[what](spec, count)), flush=True)
    os._exit(0)  # threads of the coordinator


if __name__ == "__main__":
    main()
