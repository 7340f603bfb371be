"""mlp.py CLUSTER TASK STEPS: trains an MLP of 784, 100 and 10 units as one of the workers.

The worker starts its own server, the master of its sessions. Variables are on the parameter server.
Starts its steps when all workers have their sessions. Prints "rate R": steps per second, without
the steps of the first tenth.
"""

from __future__ import print_function

import json
import sys
import time

import numpy as np
import tensorflow as tf

BATCH = 100


def main():
    cluster, task, steps = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    server = tf.train.Server(cluster, job_name="worker", task_index=task)
    device = "/job:worker/task:%d" % task
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=device)):
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.int64, [None])
        w1 = tf.Variable(tf.truncated_normal([784, 100], stddev=0.05, seed=1))
        b1 = tf.Variable(tf.zeros([100]))
        w2 = tf.Variable(tf.truncated_normal([100, 10], stddev=0.1, seed=2))
        b2 = tf.Variable(tf.zeros([10]))
        logits = tf.matmul(tf.nn.sigmoid(tf.matmul(x, w1) + b1), w2) + b2
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        count = tf.Variable(0, trainable=False)
        ready = tf.Variable(0, trainable=False)
        arrive = ready.assign_add(1)
        train = tf.train.GradientDescentOptimizer(0.05).minimize(loss, global_step=count)
    images = np.random.RandomState(task).rand(BATCH, 784).astype(np.float32)
    labels = np.arange(BATCH) % 10
    supervisor = tf.train.Supervisor(is_chief=task == 0, global_step=count, summary_op=None, recovery_wait_secs=1)
    # Without filters, the session would wait for workers that have not started or have ended.
    config = tf.ConfigProto(device_filters=["/job:ps", device])
    with supervisor.prepare_or_wait_for_session(server.target, config=config) as session:
        session.run(arrive)
        while session.run(ready) < len(cluster["worker"]):
            time.sleep(0.02)
        for i in range(steps):
            if i == steps // 10:
                begin = time.time()
            session.run(train, {x: images, y: labels})
        print("rate %.1f" % ((steps - steps // 10) / (time.time() - begin)))


if __name__ == "__main__":
    main()
