# Between-graph replication in one client: a graph and a session for each worker, which share the
# variables of a container on the parameter server.
from __future__ import print_function

import sys

import numpy as np
import tensorflow as tf

targets, steps = sys.argv[1].split(","), int(sys.argv[2])


def replica(task):
    with tf.Graph().as_default() as graph, graph.container("model"):
        with tf.device("/job:ps/task:0"):
            w = tf.Variable(tf.zeros([4]), name="w")
        with tf.device("/job:worker/task:%d" % task):
            x = tf.placeholder(tf.float32, [None, 4])
            loss = tf.reduce_mean(tf.square(tf.reduce_sum(x * (w - [1.0, 2.0, 3.0, 4.0]), 1)))
        train = tf.train.AdagradOptimizer(0.5).minimize(loss)
        init = tf.global_variables_initializer()
    return graph, w, x, loss, train, init


rng = np.random.RandomState(0)
replicas = [replica(i) for i in range(len(targets))]
sessions = [tf.Session(t, graph=r[0]) for t, r in zip(targets, replicas)]
sessions[0].run(replicas[0][-1])
for k in range(steps):
    for sess, (_, w, x, loss, train, _) in zip(sessions, replicas):
        value, _ = sess.run([loss, train], {x: rng.randn(8, 4)})
    if k % 20 == 0:
        print("loss %.5f" % value)
values = [sess.run(r[1]) for sess, r in zip(sessions, replicas)]
assert all((v == values[0]).all() for v in values), values
print("loss %.5f" % value)
tf.Session.reset(targets[0], ["model"])
