# The layers of a network on two parameter servers and a worker. The lines of the tutorial are as
# they were; what it leaves out ("...") is between them.
from __future__ import print_function

import numpy as np
import tensorflow as tf

with tf.device("/job:ps/task:0"):
    weights_1 = tf.Variable(tf.truncated_normal([8, 16], stddev=0.3, seed=1))
    biases_1 = tf.Variable(tf.fill([16], 0.1))
with tf.device("/job:ps/task:1"):
    weights_2 = tf.Variable(tf.truncated_normal([16, 4], stddev=0.3, seed=2))
    biases_2 = tf.Variable(tf.fill([4], 0.1))
with tf.device("/job:worker/task:7"):
    rng = np.random.RandomState(0)
    classes = rng.randint(4, size=64)
    rows = (rng.randn(4, 8)[classes] + 0.2 * rng.randn(64, 8)).astype(np.float32)
    input, labels = tf.constant(rows), tf.constant(classes)
    layer_1 = tf.nn.relu(tf.matmul(input, weights_1) + biases_1)
    logits = tf.nn.relu(tf.matmul(layer_1, weights_2) + biases_2)
    # ...
    loss = tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss)
    initialize = tf.global_variables_initializer()
with tf.Session("grpc://worker7:2222") as sess:
    sess.run(initialize)
    print("loss %.4f" % sess.run(loss))
    for _ in range(10000):
        sess.run(train_op)
    print("loss %.4f" % sess.run(loss))
