"""Synchronous between-graph replication with SyncReplicasOptimizer and hooks, and two ways to export the model.

Start it like between_graph.py, one process per task, or with --target to use running servers:

  python sync_replicas.py --ps_hosts=… --worker_hosts=… --job_name=worker --task_index=0 --target=grpc://localhost:2223

The chief, worker 0, writes three folders below --model_dir:
  ckpt          checkpoints
  saved_at_end  a SavedModel that a hook exports at the end of training, in the training session
  saved_later   a SavedModel of the last checkpoint, restored in another session without its devices
"""
import os

import tensorflow.compat.v1 as tf

import digits
import mlp

tf.disable_v2_behavior()
tf.app.flags.DEFINE_list("ps_hosts", ["localhost:2222"], "host:port of each parameter server")
tf.app.flags.DEFINE_list("worker_hosts", ["localhost:2223", "localhost:2224"], "host:port of each worker")
tf.app.flags.DEFINE_enum("job_name", "worker", ["ps", "worker"], "job of this process")
tf.app.flags.DEFINE_integer("task_index", 0, "index of this process in its job")
tf.app.flags.DEFINE_string("target", "", "a running server, such as grpc://localhost:2223; if empty, start the server of this task")
tf.app.flags.DEFINE_integer("last_step", 200, "number of global steps; all workers together make one")
tf.app.flags.DEFINE_integer("save_steps", 100, "global steps between checkpoints")
tf.app.flags.DEFINE_float("learning_rate", 0.01, "learning rate of Adam")
tf.app.flags.DEFINE_string("model_dir", "model", "folder for checkpoints and SavedModels, shared by all tasks")
tf.app.flags.DEFINE_string("data_dir", "", "folder with the MNIST files; if empty, generate digits")
FLAGS = tf.app.flags.FLAGS


class AnnounceHook(tf.train.SessionRunHook):
    """Prints a line when the variables are initialized, for which the other workers check only every 30 seconds."""

    def after_create_session(self, session, coord):
        print("job : worker/%d ready" % FLAGS.task_index, flush=True)


class SavedModelBuilderHook(tf.train.SessionRunHook):
    """Exports a SavedModel at the end of training, in the training session."""

    def __init__(self, export_dir, signatures):
        self.export_dir, self.signatures = export_dir, signatures

    def end(self, session):
        session.graph._unsafe_unfinalize()
        builder = tf.saved_model.builder.SavedModelBuilder(self.export_dir)
        builder.add_meta_graph_and_variables(
            session, [tf.saved_model.tag_constants.SERVING], signature_def_map=self.signatures, clear_devices=True)
        builder.save()


def main(_):
    cluster = tf.train.ClusterSpec({"ps": FLAGS.ps_hosts, "worker": FLAGS.worker_hosts})
    target = FLAGS.target
    if not target:
        server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
        if FLAGS.job_name == "ps":
            server.join()
        target = server.target
    train(cluster, target)
    if FLAGS.task_index == 0:
        export_from_checkpoint()


def train(cluster, target):
    is_chief = FLAGS.task_index == 0
    worker = "/job:worker/task:%d" % FLAGS.task_index
    replicas = len(FLAGS.worker_hosts)
    with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=cluster)):
        global_step = tf.train.get_or_create_global_step()
        model = mlp.MLP(hidden_units=100)
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.AdamOptimizer(FLAGS.learning_rate), replicas_to_aggregate=replicas, total_num_replicas=replicas)
        train_op = optimizer.minimize(model.loss, global_step=global_step)

    hooks = [AnnounceHook(), tf.train.StopAtStepHook(last_step=FLAGS.last_step), optimizer.make_session_run_hook(is_chief)]
    if is_chief:
        hooks.append(tf.train.CheckpointSaverHook(
            os.path.join(FLAGS.model_dir, "ckpt"), save_steps=FLAGS.save_steps, saver=tf.train.Saver()))
        signature = tf.saved_model.predict_signature_def({"x": model.x}, {"probabilities": model.probabilities})
        hooks.append(SavedModelBuilderHook(
            os.path.join(FLAGS.model_dir, "saved_at_end"), {"serving_default": signature}))

    train_set, _ = digits.read_data_sets(FLAGS.data_dir, seed=FLAGS.task_index)
    config = tf.ConfigProto(allow_soft_placement=True, device_filters=["/job:ps", worker])
    step, accuracy = 0, 0.0
    with tf.train.MonitoredTrainingSession(
            master=target, is_chief=is_chief, hooks=hooks, config=config, stop_grace_period_secs=10) as sess:
        while not sess.should_stop():
            x, y = train_set.next_batch(100)
            _, step, accuracy = sess.run([train_op, global_step, model.accuracy], {model.x: x, model.y: y})
            if step % 50 == 0:
                print("job : worker/%d step : %d ,training accuracy : %.2f" % (FLAGS.task_index, step, accuracy), flush=True)
    print("job : worker/%d done step : %d ,training accuracy : %.2f" % (FLAGS.task_index, step, accuracy))


def export_from_checkpoint():
    """Restores the last checkpoint in this process and exports it as a SavedModel."""
    with tf.Graph().as_default(), tf.Session() as sess:
        checkpoint = tf.train.latest_checkpoint(os.path.join(FLAGS.model_dir, "ckpt"))
        saver = tf.train.import_meta_graph(checkpoint + ".meta", clear_devices=True)
        saver.restore(sess, checkpoint)
        tensor = sess.graph.get_tensor_by_name
        tf.saved_model.simple_save(
            sess, os.path.join(FLAGS.model_dir, "saved_later"), {"x": tensor("x:0")},
            {"probabilities": tensor("probabilities:0")})
    print("saved in %s: ckpt, saved_at_end, saved_later" % FLAGS.model_dir)


if __name__ == "__main__":
    tf.app.run()
