"""In-graph replication: the process of worker 0 builds one graph with a copy of the model on every
worker, and runs the steps of each copy in a thread. One process per task:

    python -m weft_shim in_graph.py --job_name=ps
    python -m weft_shim in_graph.py --job_name=worker --task_index=1
    python -m weft_shim in_graph.py --job_name=worker --task_index=0
"""

from __future__ import print_function

import threading

import tensorflow as tf

import digits

tf.app.flags.DEFINE_string("ps_hosts", "localhost:2222", "host:port of each parameter server")
tf.app.flags.DEFINE_string(
    "worker_hosts", "localhost:2223,localhost:2224", "host:port of each worker"
)
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task in its job")
tf.app.flags.DEFINE_integer("steps", 200, "training steps of each worker")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, draw digits")
FLAGS = tf.app.flags.FLAGS


class Tower(object):
    """The copy of a softmax regression on one worker."""

    def __init__(self, w, b):
        self.x = tf.placeholder(tf.float32, [None, 784])
        self.y = tf.placeholder(tf.float32, [None, 10])
        logits = tf.matmul(self.x, w) + b
        loss = tf.nn.softmax_cross_entropy_with_logits(labels=self.y, logits=logits)
        self.loss = tf.reduce_mean(loss)
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(self.y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    def feed(self, batch):
        return {self.x: batch[0], self.y: batch[1]}


def main(_):
    workers = FLAGS.worker_hosts.split(",")
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts.split(","), "worker": workers})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps" or FLAGS.task_index > 0:
        server.join()

    train, test = digits.read_data_sets(FLAGS.data_dir)
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.zeros([784, 10]), name="w")
        b = tf.Variable(tf.zeros([10]), name="b")
        global_step = tf.Variable(0, name="global_step", trainable=False)
    optimizer = tf.train.GradientDescentOptimizer(0.2)
    towers, train_ops = [], []
    for i in range(len(workers)):
        with tf.device("/job:worker/task:%d" % i):
            towers.append(Tower(w, b))
        train_ops.append(optimizer.minimize(towers[i].loss, global_step=global_step))

    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        lock = threading.Lock()  # for the batches; the session may be used concurrently

        def run_steps(tower, train_op):
            for _ in range(FLAGS.steps):
                with lock:
                    batch = train.next_batch(100)
                sess.run(train_op, tower.feed(batch))

        threads = [threading.Thread(target=run_steps, args=a) for a in zip(towers, train_ops)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        feed = towers[0].feed((test.images, test.labels))
        step, accuracy = sess.run([global_step, towers[0].accuracy], feed)
    print("step : %d ,test accuracy : %.2f" % (step, accuracy))


if __name__ == "__main__":
    tf.app.run()
