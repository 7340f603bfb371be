"""tf.estimator.train_and_evaluate, which starts the server of a task by itself. TF_CONFIG describes
the cluster. TensorFlow 1.4 or later. One process per task:

    TF_CONFIG=... python -m weft_shim estimator.py --model_dir=model

with TF_CONFIG as in monitored.py, with the job "chief" instead of "master".
"""

from __future__ import print_function

import json
import os

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("model_dir", "model", "folder for checkpoints")
tf.app.flags.DEFINE_integer("max_steps", 500, "number of steps of all tasks")
FLAGS = tf.app.flags.FLAGS


def input_fn(seed, epochs):
    rng = np.random.RandomState(seed)
    x = rng.randn(1000, 2).astype(np.float32)
    kind = rng.randint(0, 3, 1000)
    y = (x[:, 0] - x[:, 1] + kind > 1).astype(np.int32)
    features = {"x": x, "kind": np.array(["a", "b", "c"])[kind]}
    return tf.estimator.inputs.numpy_input_fn(
        features, y, batch_size=50, num_epochs=epochs, shuffle=epochs is None
    )


def main(_):
    tf.logging.set_verbosity(tf.logging.INFO)
    kind = tf.feature_column.categorical_column_with_vocabulary_list("kind", ["a", "b", "c"])
    columns = [
        tf.feature_column.numeric_column("x", shape=[2]),
        tf.feature_column.indicator_column(kind),
    ]
    task = json.loads(os.environ["TF_CONFIG"])["task"]
    # Without filters, a session waits for the chief, which may have ended.
    filters = ["/job:ps", "/job:%s/task:%d" % (task["type"], task["index"])]
    config = tf.estimator.RunConfig(
        model_dir=FLAGS.model_dir,
        save_checkpoints_steps=200,
        session_config=tf.ConfigProto(device_filters=filters),
    )
    model = tf.estimator.DNNClassifier([16], columns, config=config)
    tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(input_fn(seed=1, epochs=None), max_steps=FLAGS.max_steps),
        tf.estimator.EvalSpec(input_fn(seed=2, epochs=1), start_delay_secs=1, throttle_secs=1),
    )
    print("trained")


if __name__ == "__main__":
    tf.app.run()
