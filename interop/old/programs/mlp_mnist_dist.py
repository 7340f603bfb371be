# A perceptron for MNIST with one graph a worker, under a Supervisor. Started as the tutorial says:
#
#   python mlp_mnist_dist.py --ps_hosts=A,B --worker_hosts=C,D --job_name=ps --task_index=0
#   python mlp_mnist_dist.py --ps_hosts=A,B --worker_hosts=C,D --job_name=worker --task_index=0
from __future__ import print_function

import tensorflow as tf
from tensorflow.examples.tutorials.mnist import input_data

flags = tf.app.flags
flags.DEFINE_string("ps_hosts", "", "host:port of the parameter servers")
flags.DEFINE_string("worker_hosts", "", "host:port of the workers")
flags.DEFINE_string("job_name", "", "ps or worker")
flags.DEFINE_integer("task_index", 0, "index of this process in its job")
flags.DEFINE_integer("train_steps", 300, "steps of all workers together")
FLAGS = flags.FLAGS


def network(x):
    hid_w = tf.Variable(tf.truncated_normal([784, 64], stddev=1.0 / 28), name="hid_w")
    hid_b = tf.Variable(tf.zeros([64]), name="hid_b")
    sm_w = tf.Variable(tf.truncated_normal([64, 10], stddev=1.0 / 8), name="sm_w")
    sm_b = tf.Variable(tf.zeros([10]), name="sm_b")
    return tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, hid_w, hid_b)), sm_w, sm_b)


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    mnist = input_data.read_data_sets("./MNIST_data", one_hot=True)
    task = FLAGS.task_index
    with tf.device(
        tf.train.replica_device_setter(
            worker_device="/job:worker/task:%d" % task, cluster=cluster
        )
    ):
        global_step = tf.Variable(0, name="global_step", trainable=False)
        x = tf.placeholder(tf.float32, [None, 784])
        y = tf.placeholder(tf.float32, [None, 10])
        logits = network(x)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=logits, labels=y))
        train = tf.train.AdamOptimizer(0.005).minimize(loss, global_step=global_step)
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        tf.summary.scalar("loss", loss)
        init = tf.global_variables_initializer()
    sv = tf.train.Supervisor(
        is_chief=task == 0,
        logdir="./logs",
        init_op=init,
        global_step=global_step,
        recovery_wait_secs=1,
        save_model_secs=5,
        summary_op=None,
    )
    sess = sv.prepare_or_wait_for_session(server.target,config=tf.ConfigProto(allow_soft_placement=True,log_device_placement=True))
    step = last = 0
    while step < FLAGS.train_steps:
        images, labels = mnist.train.next_batch(50)
        _, step, a = sess.run([train, global_step, accuracy], {x: images, y: labels})
        if step >= last + 50:
            last = step
            print("job : worker/%d step : %d ,training accuracy : %.2f" % (task, step, a))
    images, labels = mnist.test.images, mnist.test.labels
    print("test accuracy : %.2f" % sess.run(accuracy, {x: images, y: labels}))
    sv.stop()


if __name__ == "__main__":
    tf.app.run()
