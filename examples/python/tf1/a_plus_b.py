"""Two variables on two devices of a parameter server, and their sum on a device that the placer
chooses. One process per task:

    python -m weft_shim a_plus_b.py --job_name=ps
    python -m weft_shim a_plus_b.py --job_name=worker
"""

from __future__ import print_function

import tensorflow as tf

tf.app.flags.DEFINE_string("ps_hosts", "localhost:2222", "host:port of the parameter server")
tf.app.flags.DEFINE_string("worker_hosts", "localhost:2223", "host:port of the worker")
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task in its job")
FLAGS = tf.app.flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(
        cluster,
        job_name=FLAGS.job_name,
        task_index=FLAGS.task_index,
        config=tf.ConfigProto(device_count={"CPU": 2}),
    )
    if FLAGS.job_name == "ps":
        server.join()

    with tf.device("/job:ps/task:0/cpu:0"):
        a = tf.Variable(1, name="a")
    with tf.device("/job:ps/task:0/cpu:1"):
        b = tf.Variable(1, name="b")
    with tf.device("/job:ps/task:0/gpu:7"):  # there is none, so that the placer chooses another
        c = tf.Variable(1, name="c")
    config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)
    with tf.Session(server.target, config=config) as sess:
        sess.run(tf.global_variables_initializer())
        print("a + b + c =", sess.run(a + b + c))


if __name__ == "__main__":
    tf.app.run()
