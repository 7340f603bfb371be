"""Synchronous training with SyncReplicasOptimizer, and two ways to a SavedModel: from a hook at the
end of training, and from the last checkpoint in a session without the cluster. TensorFlow 1.4 or
later. One process per task:

    python -m weft_shim sync_replicas.py --job_name=ps
    python -m weft_shim sync_replicas.py --job_name=worker --task_index=0
    python -m weft_shim sync_replicas.py --job_name=worker --task_index=1

The chief, worker 0, writes model/ckpt, model/saved_at_end and model/saved_later.
"""

from __future__ import print_function

import os

import tensorflow as tf

import digits

tf.app.flags.DEFINE_string("ps_hosts", "localhost:2222", "host:port of each parameter server")
tf.app.flags.DEFINE_string(
    "worker_hosts", "localhost:2223,localhost:2224", "host:port of each worker"
)
tf.app.flags.DEFINE_string("job_name", "worker", "ps or worker")
tf.app.flags.DEFINE_integer("task_index", 0, "index of the task in its job")
tf.app.flags.DEFINE_integer("last_step", 200, "number of steps; all workers together make one")
tf.app.flags.DEFINE_integer("save_steps", 100, "steps between checkpoints")
tf.app.flags.DEFINE_string("model_dir", "model", "folder for the files that are written")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, draw digits")
FLAGS = tf.app.flags.FLAGS


class SavedModelHook(tf.train.SessionRunHook):
    """Writes a SavedModel with the values at the end of training."""

    def __init__(self, folder, signatures):
        self.folder, self.signatures = folder, signatures

    def end(self, session):
        session.graph._unsafe_unfinalize()
        save(session, self.folder, self.signatures, clear_devices=True)


def save(session, folder, signatures, clear_devices):
    builder = tf.saved_model.builder.SavedModelBuilder(folder)
    builder.add_meta_graph_and_variables(
        session,
        [tf.saved_model.tag_constants.SERVING],
        signature_def_map=signatures,
        clear_devices=clear_devices,
    )
    builder.save()


def signatures_of(x, probabilities):
    predict = tf.saved_model.signature_def_utils.predict_signature_def
    return {"serving_default": predict({"x": x}, {"probabilities": probabilities})}


def main(_):
    cluster = tf.train.ClusterSpec(
        {"ps": FLAGS.ps_hosts.split(","), "worker": FLAGS.worker_hosts.split(",")}
    )
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == "ps":
        server.join()
    train(cluster, server)
    if FLAGS.task_index == 0:
        save_checkpoint()


def train(cluster, server):
    is_chief = FLAGS.task_index == 0
    workers = len(FLAGS.worker_hosts.split(","))
    device = "/job:worker/task:%d" % FLAGS.task_index
    with tf.device(tf.train.replica_device_setter(worker_device=device, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, 784], name="x")
        y = tf.placeholder(tf.float32, [None, 10])
        w = tf.Variable(tf.zeros([784, 10]), name="w")
        b = tf.Variable(tf.zeros([10]), name="b")
        logits = tf.nn.xw_plus_b(x, w, b)
        probabilities = tf.nn.softmax(logits, name="probabilities")
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y, logits=logits))
        right = tf.equal(tf.argmax(logits, 1), tf.argmax(y, 1))
        accuracy = tf.reduce_mean(tf.cast(right, tf.float32))
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.AdamOptimizer(0.01),
            replicas_to_aggregate=workers,
            total_num_replicas=workers,
        )
        train_op = optimizer.minimize(loss, global_step=global_step)

    hooks = [
        tf.train.StopAtStepHook(last_step=FLAGS.last_step),
        optimizer.make_session_run_hook(is_chief),
    ]
    if is_chief:
        checkpoints = os.path.join(FLAGS.model_dir, "ckpt")
        hooks.append(
            tf.train.CheckpointSaverHook(
                checkpoints, save_steps=FLAGS.save_steps, saver=tf.train.Saver()
            )
        )
        at_end = os.path.join(FLAGS.model_dir, "saved_at_end")
        hooks.append(SavedModelHook(at_end, signatures_of(x, probabilities)))

    train_set, _ = digits.read_data_sets(FLAGS.data_dir, seed=FLAGS.task_index)
    step, now = 0, 0.0
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        hooks=hooks,
        config=tf.ConfigProto(device_filters=["/job:ps", device]),
        stop_grace_period_secs=5,
    ) as sess:
        while not sess.should_stop():
            images, labels = train_set.next_batch(100)
            _, step, now = sess.run([train_op, global_step, accuracy], {x: images, y: labels})
            if step % 50 == 0:
                print(
                    "job : worker/%d step : %d ,training accuracy : %g"
                    % (FLAGS.task_index, step, now)
                )
    print("job : worker/%d done step : %d ,training accuracy : %g" % (FLAGS.task_index, step, now))


def save_checkpoint():
    """Writes the last checkpoint as a SavedModel, without the devices of the cluster."""
    with tf.Graph().as_default(), tf.Session() as sess:
        checkpoint = tf.train.latest_checkpoint(os.path.join(FLAGS.model_dir, "ckpt"))
        saver = tf.train.import_meta_graph(checkpoint + ".meta", clear_devices=True)
        saver.restore(sess, checkpoint)
        tensor = sess.graph.get_tensor_by_name
        signatures = signatures_of(tensor("x:0"), tensor("probabilities:0"))
        save(sess, os.path.join(FLAGS.model_dir, "saved_later"), signatures, clear_devices=False)
    print("saved ckpt, saved_at_end and saved_later in %s" % FLAGS.model_dir)


if __name__ == "__main__":
    tf.app.run()
