"""Trains a linear model with between-graph replication, for the examples of docs/guides/kubernetes.md.

In a TFJob the process starts the server of its own task, which TF_CONFIG names. Otherwise it is the
client of a worker that runs elsewhere: Kubernetes gives the index of its pod in the job, and TARGET
is the address of that worker.
"""
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
STEPS = int(os.environ.get("STEPS", "1000"))  # of all workers together
PAUSE = float(os.environ.get("PAUSE", "0"))  # seconds between the steps of a worker
DIRECTORY = os.environ["CHECKPOINT_DIR"]


class Recover(tf.train.SessionRunHook):
    """Prints the step at which each session begins."""

    def __init__(self, name, global_step):
        self.name, self.global_step = name, global_step

    def after_create_session(self, session, coord):
        print("%s: begins at step %d" % (self.name, session.run(self.global_step)), flush=True)


def connect():
    """Returns the target, the index of the worker, and the number of parameter servers."""
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    if not config:
        index = int(os.environ["JOB_COMPLETION_INDEX"])
        return os.environ["TARGET"].format(worker=index), index, int(os.environ["PS_TASKS"])
    task = config["task"]
    server = tf.train.Server(config["cluster"], job_name=task["type"], task_index=task["index"])
    return server.target, task["index"], len(config["cluster"]["ps"])


def main():
    target, index, ps_tasks = connect()
    worker = "/job:worker/task:%d" % index
    with tf.device(tf.train.replica_device_setter(ps_tasks=ps_tasks, worker_device=worker)):
        global_step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 20])
        y = tf.placeholder(tf.float32, [None])
        weights = tf.get_variable("weights", [20], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.squared_difference(tf.linalg.matvec(x, weights) + bias, y))
        train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=global_step)

    truth = np.random.RandomState(0).normal(size=20)
    examples = np.random.RandomState(index + 1)
    config = tf.ConfigProto(device_filters=["/job:ps", worker])
    name = "worker %d" % index
    hooks = [tf.train.StopAtStepHook(last_step=STEPS), Recover(name, global_step)]
    with tf.train.MonitoredTrainingSession(
            master=target, is_chief=index == 0, checkpoint_dir=DIRECTORY, save_checkpoint_secs=5,
            save_summaries_steps=None, save_summaries_secs=None, hooks=hooks, config=config) as session:
        while not session.should_stop():
            batch = examples.normal(size=(32, 20))
            _, step, value = session.run([train_op, global_step, loss], {x: batch, y: batch.dot(truth) + 1})
            if step % 50 < 2:
                print("%s: step %d, loss %.6f" % (name, step, value), flush=True)
            time.sleep(PAUSE)
    print("%s: done" % name, flush=True)


if __name__ == "__main__":
    main()
