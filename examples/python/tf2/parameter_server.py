"""Trains a softmax regression with ParameterServerStrategy on Weft's servers.

  weft launch --layout=coordinator --ps=2 --workers=2 -- python parameter_server.py

The program is the chief: it schedules steps on the workers, and the variables are on the parameter
servers. The cluster is in TF_CONFIG.
"""

import argparse
import os

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf

CLASSES, FEATURES, BATCH = 10, 64, 100


def samples(seed):
    """Yields batches of noisy prototypes, one for each class, with their classes."""
    prototypes = np.random.RandomState(0).rand(CLASSES, FEATURES).astype(np.float32)
    rng = np.random.RandomState(seed)
    while True:
        labels = rng.randint(CLASSES, size=BATCH)
        noise = 0.3 * rng.randn(BATCH, FEATURES)
        yield (prototypes[labels] + noise).astype(np.float32), labels.astype(np.int64)


def dataset(context):
    """Returns the batches of one worker."""
    batches = samples(1 + context.input_pipeline_id)
    data = [next(batches) for _ in range(50)]
    features, labels = (np.concatenate(parts) for parts in zip(*data))
    return tf.data.Dataset.from_tensor_slices((features, labels)).repeat().batch(BATCH, drop_remainder=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400, help="steps of all workers together")
    parser.add_argument("--learning-rate", type=float, default=0.5)
    args = parser.parse_args()

    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    with strategy.scope():
        weights = tf.Variable(tf.zeros([FEATURES, CLASSES]))
        biases = tf.Variable(tf.zeros([CLASSES]))

    def loss_of(features, labels):
        logits = tf.matmul(features, weights) + biases
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))

    def replica_step(features, labels):
        with tf.GradientTape() as tape:
            loss = loss_of(features, labels)
        for variable, gradient in zip([weights, biases], tape.gradient(loss, [weights, biases])):
            variable.assign_sub(args.learning_rate * gradient)
        return loss

    @tf.function
    def step(iterator):
        return strategy.run(replica_step, args=next(iterator))

    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    batches = iter(coordinator.create_per_worker_dataset(
        lambda: strategy.distribute_datasets_from_function(dataset)))
    for _ in range(args.steps):
        loss = coordinator.schedule(step, args=(batches,))
    coordinator.join()
    features, labels = next(samples(99))
    predicted = np.argmax(features @ weights.numpy() + biases.numpy(), axis=1)
    print("last loss %.3f, test accuracy %.2f" % (loss.fetch(), np.mean(predicted == labels)))


if __name__ == "__main__":
    main()
