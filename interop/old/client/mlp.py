"""mlp.py CLUSTER TASK TURNS STEPS: trains MLPs of 784, 100 and 10 units as one of the workers.

The worker starts its own server, the master of its sessions. Each parameter server has the variables
of one MLP. They are trained in turns, and all workers start a turn together. Prints "turn PS RATE"
for each turn: the task of the parameter server and the steps per second.
"""

from __future__ import print_function

import json
import sys
import time

import numpy as np
import tensorflow as tf

BATCH = 100


def model(cluster, ps, worker, x, y):
    """Returns the training step of an MLP with its variables on a parameter server."""
    device = "/job:ps/task:%d" % ps
    with tf.device(lambda op: device if op.type.startswith("Variable") else worker):
        w1 = tf.Variable(tf.truncated_normal([784, 100], stddev=0.05, seed=1))
        b1 = tf.Variable(tf.zeros([100]))
        w2 = tf.Variable(tf.truncated_normal([100, 10], stddev=0.1, seed=2))
        b2 = tf.Variable(tf.zeros([10]))
        logits = tf.matmul(tf.nn.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
        )
        count = tf.Variable(0, trainable=False)
        variables = [w1, b1, w2, b2]
        return tf.train.GradientDescentOptimizer(0.05).minimize(
            loss, global_step=count, var_list=variables
        )


def main():
    cluster, task = json.loads(sys.argv[1]), int(sys.argv[2])
    turns, steps = int(sys.argv[3]), int(sys.argv[4])
    server = tf.train.Server(cluster, job_name="worker", task_index=task)
    device = "/job:worker/task:%d" % task
    with tf.device(device):
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
    train = [model(cluster, ps, device, x, y) for ps in range(len(cluster["ps"]))]
    with tf.device("/job:ps/task:0"):
        arrived = tf.Variable(0, trainable=False)
        arrive = arrived.assign_add(1, use_locking=True)
    data = {
        x: np.random.RandomState(task).rand(BATCH, 784).astype(np.float32),
        y: np.arange(BATCH) % 10,
    }
    supervisor = tf.train.Supervisor(is_chief=task == 0, summary_op=None, recovery_wait_secs=1)
    # Without filters, the session would wait for workers that have not started or have ended.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with supervisor.prepare_or_wait_for_session(server.target, config=config) as session:
        for turn in range(turns):
            session.run(arrive)
            while session.run(arrived) < len(cluster["worker"]) * (turn + 1):
                time.sleep(0.002)
            # 0 1, 1 0, 0 1, …: neither is always the first of a pair
            ps = (turn + turn // 2) % len(cluster["ps"])
            begin = time.time()
            for _ in range(steps):
                session.run(train[ps], data)
            print("turn %d %.1f" % (ps, steps / (time.time() - begin)))


if __name__ == "__main__":
    main()
