"""In-graph replication: one client and one graph, with a copy of the model on every worker and the variables on the
parameter server.

  weft server --cluster-spec=… --job-name=ps     --task-index=0      one ps and two workers
  weft server --cluster-spec=… --job-name=worker --task-index=0
  weft server --cluster-spec=… --job-name=worker --task-index=1
  python in_graph.py --target=grpc://localhost:2223 --mode=sync

async: a thread runs the steps of each worker, which applies its own gradients.
sync: every step applies the average of the gradients of all workers.
"""
import threading

import tensorflow.compat.v1 as tf

import digits

tf.disable_v2_behavior()
tf.app.flags.DEFINE_string("target", "grpc://localhost:2223", "any task of the cluster")
tf.app.flags.DEFINE_enum("mode", "async", ["async", "sync"], "how gradients are applied")
tf.app.flags.DEFINE_integer("workers", 2, "number of worker tasks")
tf.app.flags.DEFINE_integer("steps", 200, "training steps, of each worker (async) or of all workers together (sync)")
tf.app.flags.DEFINE_integer("batch_size", 100, "images per worker and step")
tf.app.flags.DEFINE_float("learning_rate", 0.2, "learning rate of gradient descent")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, generate digits")
FLAGS = tf.app.flags.FLAGS


class Tower:
    """The copy of a softmax regression on one worker."""

    def __init__(self, w, b):
        self.x = tf.placeholder(tf.float32, [None, 784])
        self.y = tf.placeholder(tf.float32, [None, 10])
        logits = tf.matmul(self.x, w) + b
        self.loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=self.y, logits=logits))
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(self.y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(right, tf.float32))

    def feed(self, batch):
        return {self.x: batch[0], self.y: batch[1]}


def main(_):
    train, test = digits.read_data_sets(FLAGS.data_dir)
    with tf.device("/job:ps/task:0"):
        w = tf.Variable(tf.zeros([784, 10]), name="w")
        b = tf.Variable(tf.zeros([10]), name="b")
        global_step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
    towers = []
    for i in range(FLAGS.workers):
        with tf.device("/job:worker/task:%d" % i):
            towers.append(Tower(w, b))
    build = build_async if FLAGS.mode == "async" else build_sync
    run = build(optimizer, towers, global_step)
    with tf.Session(FLAGS.target) as sess:
        sess.run(tf.global_variables_initializer())
        run(sess, train)
        feed = towers[0].feed((test.images, test.labels))
        step, accuracy = sess.run([global_step, towers[0].accuracy], feed)
    print("mode : %s step : %d ,test accuracy : %.2f" % (FLAGS.mode, step, accuracy))


def build_async(optimizer, towers, global_step):
    train_ops = [optimizer.minimize(t.loss, global_step=global_step) for t in towers]

    def run(sess, train):
        lock = threading.Lock()  # for the batches; the session may be used concurrently

        def drive(tower, train_op):
            for _ in range(FLAGS.steps):
                with lock:
                    batch = train.next_batch(FLAGS.batch_size)
                sess.run(train_op, tower.feed(batch))

        threads = [threading.Thread(target=drive, args=job) for job in zip(towers, train_ops)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    return run


def build_sync(optimizer, towers, global_step):
    gradients = [optimizer.compute_gradients(t.loss) for t in towers]
    with tf.device("/job:ps/task:0"):
        average = [(tf.add_n([g for g, _ in of_one]) / len(towers), of_one[0][1]) for of_one in zip(*gradients)]
        train_op = optimizer.apply_gradients(average, global_step=global_step)

    def run(sess, train):
        for _ in range(FLAGS.steps):
            feed = {}
            for t in towers:
                feed.update(t.feed(train.next_batch(FLAGS.batch_size)))
            sess.run(train_op, feed)

    return run


if __name__ == "__main__":
    tf.app.run()
