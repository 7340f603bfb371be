"""Checkpoints and SavedModels that the tasks of a cluster write, read by a cluster and in process."""

import os
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest
from interop.models import Network, digits

STEPS, BATCH = 20, 50
SERVING = [tf.saved_model.tag_constants.SERVING]
CLOSE = dict(rtol=1e-4, atol=1e-4)


class Saving(ClusterTest):
    jobs = {"ps": 2, "worker": 2}
    mixes = ["weft", "tf-ps"]

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def train(self):
        """Trains, saves a sharded checkpoint and a SavedModel. Returns the path and the logits."""
        with tf.device(tf.train.replica_device_setter(2, worker_device="/job:worker/task:0")):
            network = Network(tf.train.AdamOptimizer(0.01), use_resource=False)
        logits = tf.identity(network.logits, "logits")
        tf.add_to_collection("x", network.x)
        signature = tf.saved_model.predict_signature_def({"x": network.x}, {"logits": logits})
        saver, data = tf.train.Saver(sharded=True), digits(200)
        with tf.Session(self.cluster.target()) as sess:
            sess.run(tf.global_variables_initializer())
            for i in range(STEPS):
                sess.run(network.train, network.feeds(data, i, BATCH))
            want = sess.run(logits, {network.x: data[0]})
            path = saver.save(sess, os.path.join(self.dir, "model"), global_step=network.step)
            builder = tf.saved_model.Builder(os.path.join(self.dir, "built"))
            builder.add_meta_graph_and_variables(
                sess,
                SERVING,
                {"serving_default": signature},
                clear_devices=True,
                strip_default_attrs=True,
            )
            builder.save()
        return path, data[0], want

    def check_model(self, sess, name, x, want):
        """Loads a SavedModel into the default graph and compares its logits."""
        signatures = tf.saved_model.load(sess, SERVING, os.path.join(self.dir, name)).signature_def
        signature = signatures["serving_default"]
        got = sess.run(signature.outputs["logits"].name, {signature.inputs["x"].name: x})
        np.testing.assert_allclose(got, want, **CLOSE)

    def test_a_trained_model_is_restored_and_exported(self):
        path, x, want = self.train()
        tf.Session.reset(self.cluster.target())
        with self.subTest("restored in another session"), tf.Graph().as_default() as graph:
            saver = tf.train.import_meta_graph(path + ".meta", clear_devices=True)
            with tf.Session(self.cluster.target("worker", 1)) as sess:
                saver.restore(sess, path)
                (fed,) = graph.get_collection("x")
                logits = graph.get_tensor_by_name("logits:0")
                np.testing.assert_allclose(sess.run(logits, {fed: x}), want, **CLOSE)
                tf.saved_model.simple_save(
                    sess, os.path.join(self.dir, "simple"), {"x": fed}, {"logits": logits}
                )
        for name in ("built", "simple"):
            with self.subTest(name + " on the cluster"), tf.Graph().as_default():
                with tf.Session(self.cluster.target()) as sess:
                    self.check_model(sess, name, x, want)
            with self.subTest(name + " in process"), tf.Graph().as_default(), tf.Session() as sess:
                self.check_model(sess, name, x, want)
