"""Between-graph replication: every worker has its own client and graph, and the workers share the variables on the
parameter servers. Start one process per task:

  python between_graph.py --ps_hosts=localhost:2222 --worker_hosts=localhost:2223,localhost:2224 --job_name=ps --task_index=0
  python between_graph.py --ps_hosts=…              --worker_hosts=…                             --job_name=worker --task_index=0
  python between_graph.py --ps_hosts=…              --worker_hosts=…                             --job_name=worker --task_index=1

Each process then runs TensorFlow's server. With --target it uses a running server (weft server …, or
weft demo --servers-only), and only the clients of the workers are started:

  python between_graph.py --ps_hosts=… --worker_hosts=… --job_name=worker --task_index=0 --target=grpc://localhost:2223
"""
import tempfile
import time

import tensorflow.compat.v1 as tf

import digits
import mlp

tf.disable_v2_behavior()
tf.app.flags.DEFINE_list("ps_hosts", ["localhost:2222"], "host:port of each parameter server")
tf.app.flags.DEFINE_list("worker_hosts", ["localhost:2223", "localhost:2224"], "host:port of each worker")
tf.app.flags.DEFINE_enum("job_name", "worker", ["ps", "worker"], "job of this process")
tf.app.flags.DEFINE_integer("task_index", 0, "index of this process in its job")
tf.app.flags.DEFINE_string("target", "", "a running server, such as grpc://localhost:2223; if empty, start the server of this task")
tf.app.flags.DEFINE_integer("hidden_units", 100, "units of the hidden layer")
tf.app.flags.DEFINE_integer("train_steps", 1000, "total number of steps of all workers")
tf.app.flags.DEFINE_integer("batch_size", 100, "images per step")
tf.app.flags.DEFINE_float("learning_rate", 0.01, "learning rate of Adam")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, generate digits")
FLAGS = tf.app.flags.FLAGS


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    target = FLAGS.target
    if not target:
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        target = server.target
    train(cluster, target)


def train(cluster, target):
    worker = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        model = mlp.MLP(FLAGS.hidden_units)
        train_op = tf.train.AdamOptimizer(FLAGS.learning_rate).minimize(model.loss, global_step=global_step)
        init_op = tf.global_variables_initializer()

    train_set, test_set = digits.read_data_sets(FLAGS.data_dir, seed=FLAGS.task_index)
    supervisor = tf.train.Supervisor(
        is_chief=FLAGS.task_index == 0, logdir=tempfile.mkdtemp(), init_op=init_op, recovery_wait_secs=1,
        global_step=global_step, save_model_secs=0, save_summaries_secs=0)
    config = tf.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", worker])
    with supervisor.prepare_or_wait_for_session(target, config=config) as sess:
        start, local_step, step = time.time(), 0, 0
        while step < FLAGS.train_steps and not supervisor.should_stop():
            x, y = train_set.next_batch(FLAGS.batch_size)
            _, step = sess.run([train_op, global_step], {model.x: x, model.y: y})
            local_step += 1
            if local_step % 100 == 0:
                accuracy = sess.run(model.accuracy, {model.x: x, model.y: y})
                print("job : worker/%d step : %d ,training accuracy : %.2f" % (FLAGS.task_index, step, accuracy), flush=True)
        seconds = time.time() - start
        accuracy = sess.run(model.accuracy, {model.x: test_set.images, model.y: test_set.labels})
    print("job : worker/%d local steps : %d in %.1f s ,test accuracy : %.2f" %
          (FLAGS.task_index, local_step, seconds, accuracy))


if __name__ == "__main__":
    tf.app.run()
