# In-graph replication: one graph has the parameters on ps 0 and a copy of the model on each worker,
# and one client thread a worker runs its train_ops[i].
from __future__ import print_function

import sys
import threading

import numpy as np
import tensorflow as tf

workers, steps = int(sys.argv[1]), int(sys.argv[2])
truth = np.array([[2.0], [-1.0], [0.5]], np.float32)

with tf.device("/job:ps/task:0"):
    w = tf.Variable(tf.zeros([3, 1]), name="w")
    b = tf.Variable(tf.zeros([1]), name="b")
    count = tf.Variable(0, name="count", trainable=False)
inputs, losses, train_ops = [], [], []
for i in range(workers):
    with tf.device("/job:worker/task:%d" % i):
        x = tf.placeholder(tf.float32, [None, 3])
        want = tf.matmul(x, tf.constant(truth)) + 1.0
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - want))
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        inputs.append(x)
        losses.append(loss)
        train_ops.append(optimizer.minimize(loss, global_step=count))

sess = tf.Session("grpc://localhost:2222")
sess.run(tf.global_variables_initializer())


def drive(i):
    rng = np.random.RandomState(i)
    for k in range(steps):
        _, loss = sess.run([train_ops[i], losses[i]], {inputs[i]: rng.randn(16, 3)})
        if k % 20 == 0:
            print("worker %d loss %.5f" % (i, loss))


threads = [threading.Thread(target=drive, args=(i,)) for i in range(workers)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("count %d error %.5f" % (sess.run(count), np.abs(sess.run(w) - truth).max()))
