# Replicas that do not wait for each other, under MonitoredTrainingSession with StopAtStepHook,
# checkpoints and a log line every few steps.
from __future__ import print_function

import argparse

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts", type=lambda s: s.split(","))
parser.add_argument("--worker_hosts", type=lambda s: s.split(","))
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
FLAGS = parser.parse_args()

tf.logging.set_verbosity(tf.logging.INFO)
cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
if FLAGS.job_name == "ps":
    server.join()

worker = "/job:worker/task:%d" % FLAGS.task_index
with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
    step = tf.Variable(0, name="global_step", trainable=False, dtype=tf.int64)
    tf.add_to_collection(tf.GraphKeys.GLOBAL_STEP, step)
    x = tf.placeholder(tf.float32, [None, 6, 6, 1])
    y = tf.placeholder(tf.int64, [None])
    kernel = tf.get_variable(
        "kernel", [3, 3, 1, 4], initializer=tf.truncated_normal_initializer(stddev=0.2, seed=1)
    )
    h = tf.nn.relu(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], "VALID"))
    h = tf.reshape(h, [-1, 64])
    w = tf.get_variable(
        "w", [64, 5], initializer=tf.truncated_normal_initializer(stddev=0.1, seed=2)
    )
    logits = tf.matmul(h, w)
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
    )
    tf.summary.scalar("loss", loss)
    rate = tf.train.exponential_decay(0.2, step, 100, 0.9)
    train = tf.train.AdagradOptimizer(rate).minimize(loss, global_step=step)

hooks = [tf.train.StopAtStepHook(last_step=200), tf.train.NanTensorHook(loss)]
config = tf.ConfigProto(device_filters=["/job:ps", worker])
centres = np.random.RandomState(3).randn(5, 6, 6, 1)
rng = np.random.RandomState(FLAGS.task_index)
with tf.train.MonitoredTrainingSession(
    master=server.target,
    is_chief=FLAGS.task_index == 0,
    checkpoint_dir="train",
    hooks=hooks,
    save_checkpoint_secs=2,
    config=config,
) as sess:
    print("ready")
    shown = -1
    while not sess.should_stop():
        c = rng.randint(5, size=30)
        feed = {x: centres[c] + 0.4 * rng.randn(30, 6, 6, 1), y: c}
        _, value, k = sess.run([train, loss, step], feed)
        if k // 10 > shown:  # the other worker counts steps, too
            shown = k // 10
            print("step %d loss %.4f" % (k, value))
print("done")
