"""A training session with hooks, in a cluster that TF_CONFIG describes, as cluster managers do:

    {"cluster": {"master": ["localhost:2222"],
                 "ps": ["localhost:2223"],
                 "worker": ["localhost:2224"]},
     "task": {"type": "worker", "index": 0}}

The master is the chief: it initializes the variables and writes checkpoints. One process per task:

    TF_CONFIG=... python -m weft_shim monitored.py --model_dir=model
"""

from __future__ import print_function

import json
import os

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("model_dir", "model", "folder for checkpoints")
tf.app.flags.DEFINE_integer("last_step", 500, "number of steps of all tasks")
FLAGS = tf.app.flags.FLAGS


class PrintHook(tf.train.SessionRunHook):
    """Prints the loss now and then."""

    def __init__(self, name, step, loss):
        self.name, self.values = name, [step, loss]

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(self.values)

    def after_run(self, run_context, run_values):
        step, loss = run_values.results
        if step % 100 == 0:
            print("%s step : %d ,loss : %g" % (self.name, step, loss))


def main(_):
    config = json.loads(os.environ["TF_CONFIG"])
    job, task = config["task"]["type"], config["task"]["index"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server_def = tf.train.ServerDef(
        cluster=cluster.as_cluster_def(), protocol="grpc", job_name=job, task_index=task
    )
    server = tf.train.Server(server_def)
    if job == "ps":
        server.join()

    device = "/job:%s/task:%d" % (job, task)
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.placeholder(tf.float32, [None])
        w = tf.Variable(tf.zeros([3, 1]), name="w")
        b = tf.Variable(0.0, name="b")
        prediction = tf.reshape(tf.matmul(x, w), [-1]) + b
        loss = tf.reduce_mean(tf.square(prediction - y))
        rate = tf.train.exponential_decay(0.1, global_step, 100, 0.9)
        train_op = tf.train.MomentumOptimizer(rate, 0.5).minimize(loss, global_step=global_step)

    rng = np.random.RandomState(task)
    hooks = [
        tf.train.StopAtStepHook(last_step=FLAGS.last_step),
        tf.train.NanTensorHook(loss),
        PrintHook(device, global_step, loss),
    ]
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=job == "master",
        checkpoint_dir=FLAGS.model_dir,
        save_checkpoint_secs=60,
        hooks=hooks,
        config=tf.ConfigProto(device_filters=["/job:ps", device]),
    ) as sess:
        while not sess.should_stop():
            points = rng.randn(50, 3)
            weights = sess.run([train_op, w, b], {x: points, y: points.dot([1.0, -2.0, 3.0]) + 4})[
                1:
            ]
    print(
        "%s done w : %s b : %.2f" % (device, np.round(weights[0].ravel(), 1).tolist(), weights[1])
    )


if __name__ == "__main__":
    tf.app.run()
