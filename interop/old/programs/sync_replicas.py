# Replicas that apply the mean of their gradients, and a SavedModel written in two ways. The lines
# of the tutorial are as they were; the model and the arguments, which it leaves out, are around them.
from __future__ import print_function

import argparse
import json

import numpy as np
import save
import tensorflow as tf
from tensorflow.python.training import session_run_hook

parser = argparse.ArgumentParser()
parser.add_argument("--cluster", type=json.loads)
parser.add_argument("--job_name")
parser.add_argument("--last_step", type=int, default=60)
parser.add_argument("--save_steps", type=int, default=20)
args = parser.parse_args()
cluster_spec, job_name = args.cluster, args.job_name
device = "/job:%s/replica:0/task:0/device:CPU:0" % job_name


class SavedModelBuilderHook(session_run_hook.SessionRunHook):
    def __init__(self, export_dir, signature_def_map, tags):
        self.export_dir = export_dir
        self.signature_def_map = signature_def_map
        self.tags = tags
    def end(self, session):
        session.graph._unsafe_unfinalize()
        builder = tf.saved_model.builder.SavedModelBuilder(self.export_dir)
        builder.add_meta_graph_and_variables(
            session,
            self.tags,
            signature_def_map=self.signature_def_map
        )
        builder.save()


class Trainer:
    learning_rate = 0.05

    def __init__(self):
        self.worker_num = len(cluster_spec["master"]) + len(cluster_spec["worker"])
        self.is_chief = job_name == "master"

    def run(self, master):
        is_chief = self.is_chief
        with tf.device(tf.train.replica_device_setter(
            cluster=cluster_spec,
            worker_device=device
        )):
            # graph
            global_step = tf.train.get_or_create_global_step()
            x = tf.placeholder(tf.float32, [None, 3], name="x")
            y = tf.placeholder(tf.float32, [None], name="y")
            w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
            b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
            guess = tf.reshape(tf.matmul(x, w) + b, [-1], name="guess")
            loss = tf.reduce_mean(tf.square(guess - y))

            train_op = tf.train.SyncReplicasOptimizer(
                tf.train.AdamOptimizer(self.learning_rate),
                replicas_to_aggregate=self.worker_num,
                total_num_replicas=self.worker_num)
            step = train_op.minimize(loss, global_step=global_step)
        saver = tf.train.Saver()
        signature_def_map = {
            "serving_default": tf.saved_model.signature_def_utils.predict_signature_def(
                {"x": x}, {"guess": guess}
            )
        }
        hooks = [
            tf.train.StopAtStepHook(last_step=args.last_step),
            tf.train.CheckpointSaverHook(
                './ckpt',
                save_steps=args.save_steps,
                saver=saver),
            train_op.make_session_run_hook(self.is_chief)
        ]
        if is_chief:
            hooks.append(
                SavedModelBuilderHook("saved_by_hook", signature_def_map, ["serve"])
            )
        print("graph built")
        rng = np.random.RandomState(len(job_name))
        with tf.train.MonitoredTrainingSession(
            is_chief=is_chief,
            master=master,
            hooks=hooks
        ) as sess:
            while not sess.should_stop():
                rows = rng.randn(20, 3)
                feed = {x: rows, y: rows.dot([1.0, -2.0, 3.0]) + 0.5}
                _, now, k = sess.run([step, loss, global_step], feed)
                print("step %d loss %.5f" % (k, now))
        return signature_def_map


cluster_spec_object = tf.train.ClusterSpec(cluster_spec)
server_def = tf.train.ServerDef(
    cluster=cluster_spec_object.as_cluster_def(),
    protocol="grpc",
    job_name=job_name, # worker, master, ps
    task_index=0)
server = tf.train.Server(server_def)

if job_name == "ps":
    server.join()
else:
    # build model
    signature_def_map = Trainer().run(server.target)

if job_name == "master":
    with tf.Graph().as_default():
        with tf.Session() as sess:
            ckpt = tf.train.get_checkpoint_state("ckpt")
            saver = tf.train.import_meta_graph(
                '{}.meta'.format(ckpt.model_checkpoint_path),
                clear_devices=True)
            saver.restore(sess, ckpt.model_checkpoint_path)
            save.save(sess, "saved", signature_def_map)
    # The worker's server may be gone with its process.
    config = tf.ConfigProto(device_filters=["/job:ps", "/job:master"])
    for folder, target in (("saved", ""), ("saved_by_hook", server.target)):
        with tf.Graph().as_default():
            with tf.Session(target, config=config if target else None) as sess:
                tf.saved_model.loader.load(sess, ["serve"], folder)
                print("%s guess %.3f" % (folder, sess.run("guess:0", {"x:0": [[1, 1, 1]]})[0]))
