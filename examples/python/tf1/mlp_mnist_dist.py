"""Between-graph replication of a network with one hidden layer. Every worker builds its own graph;
replica_device_setter places the variables on the parameter servers in turn, and a Supervisor lets
the chief initialize them. One process per task:

    python -m weft_shim mlp_mnist_dist.py --job_name=ps --task_index=0
    python -m weft_shim mlp_mnist_dist.py --job_name=ps --task_index=1
    python -m weft_shim mlp_mnist_dist.py --job_name=worker --task_index=0
    python -m weft_shim mlp_mnist_dist.py --job_name=worker --task_index=1
"""

from __future__ import print_function

import math
import tempfile

import tensorflow as tf

import digits

tf.app.flags.DEFINE_string(
    "ps_hosts", "localhost:2222,localhost:2223", "host:port of each parameter server"
)
tf.app.flags.DEFINE_string(
    "worker_hosts", "localhost:2224,localhost:2225", "host:port of each worker"
)
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task in its job")
tf.app.flags.DEFINE_integer("hidden_units", 100, "units of the hidden layer")
tf.app.flags.DEFINE_integer("train_steps", 1000, "number of steps of all workers")
tf.app.flags.DEFINE_integer("batch_size", 100, "images in a step")
tf.app.flags.DEFINE_float("learning_rate", 0.01, "learning rate of Adam")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, draw digits")
FLAGS = tf.app.flags.FLAGS


def layer(x, inputs, outputs, name):
    w = tf.Variable(
        tf.truncated_normal([inputs, outputs], stddev=1 / math.sqrt(inputs)), name=name + "_w"
    )
    b = tf.Variable(tf.zeros([outputs]), name=name + "_b")
    return tf.nn.xw_plus_b(x, w, b)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    else:
        train(cluster, server)


def train(cluster, server):
    worker = "/job:worker/task:%d" % FLAGS.task_index
    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.float32, [None, 10])
        hidden = tf.nn.relu(layer(x, 784, FLAGS.hidden_units, "hid"))
        logits = layer(hidden, FLAGS.hidden_units, 10, "sm")
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        optimizer = tf.train.AdamOptimizer(FLAGS.learning_rate)
        train_op = optimizer.minimize(loss, global_step=global_step)
        summary_op = tf.summary.scalar("loss", loss)
        init_op = tf.global_variables_initializer()

    train_set, test_set = digits.read_data_sets(FLAGS.data_dir, seed=FLAGS.task_index)
    supervisor = tf.train.Supervisor(
        is_chief=is_chief,
        logdir=tempfile.mkdtemp(),
        init_op=init_op,
        recovery_wait_secs=1,
        global_step=global_step,
        summary_op=None,  # a thread of the supervisor would run it without images
    )
    config = tf.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", worker])
    sess = supervisor.prepare_or_wait_for_session(server.target, config=config)
    step, local_step = 0, 0
    while step < FLAGS.train_steps and not supervisor.should_stop():
        images, labels = train_set.next_batch(FLAGS.batch_size)
        _, step = sess.run([train_op, global_step], {x: images, y: labels})
        local_step += 1
        if local_step % 100 == 0:
            now, summary = sess.run([accuracy, summary_op], {x: images, y: labels})
            if is_chief:
                supervisor.summary_computed(sess, summary)
            print(
                "job : worker/%d step : %d ,training accuracy : %g" % (FLAGS.task_index, step, now)
            )
    now = sess.run(accuracy, {x: test_set.images, y: test_set.labels})
    print("job : worker/%d step : %d ,test accuracy : %g" % (FLAGS.task_index, step, now))
    sess.close()


if __name__ == "__main__":
    tf.app.run()
