"""Checkpoints, event files and SavedModels of the Go examples, read by TensorFlow."""

import functools
import os
import subprocess
import tempfile

import numpy as np
import tensorflow.compat.v1 as tf

from interop import cluster
from interop.clustertest import ClusterTest


PROGRAMS = tempfile.TemporaryDirectory()


@functools.cache
def built(example):
    """Builds an example and returns the path of its program."""
    subprocess.run(
        ["go", "build", "-o", PROGRAMS.name, "./examples/" + example], cwd=cluster.ROOT, check=True
    )
    return os.path.join(PROGRAMS.name, example)


class GoTraining(ClusterTest):
    jobs = {"ps": 2, "worker": 2}
    mixes = ["weft", "tf-ps", "tf-master", "tf"]

    def start(self, example, *flags):
        """Starts both workers of an example. finish waits for them."""
        hosts = [f"--{job}-hosts=" + ",".join(self.cluster.spec[job]) for job in ("ps", "worker")]
        return [
            subprocess.Popen(
                [
                    built(example),
                    *hosts,
                    f"--task-index={i}",
                    "--target=" + self.cluster.target("worker", i),
                    *flags,
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            for i in range(2)
        ]

    def finish(self, workers):
        for worker in workers:
            out, _ = worker.communicate(timeout=500)
            self.assertEqual(worker.returncode, 0, out[-2000:])
            self.assertIn("accuracy", out)

    def test_between_graph(self):
        with tempfile.TemporaryDirectory() as out:
            self.finish(self.start("betweengraph", "--train-steps=200", "--log-dir=" + out))
            self.assertTrue(tf.train.latest_checkpoint(out))
            events = [os.path.join(out, name) for name in os.listdir(out) if "tfevents" in name]
            kinds = {e.WhichOneof("what") for e in tf.train.summary_iterator(events[0])}
            self.assertLessEqual({"file_version", "graph_def", "session_log"}, kinds)

    def test_sync_replicas(self):
        with tempfile.TemporaryDirectory() as out:
            self.finish(
                self.start(
                    "syncreplicas", "--last-step=40", "--save-steps=20", "--model-dir=" + out
                )
            )
            checkpoint = tf.train.latest_checkpoint(os.path.join(out, "ckpt"))
            self.assertGreaterEqual(int(checkpoint.rsplit("-", 1)[1]), 40)
            images = np.random.RandomState(1).rand(5, 784).astype(np.float32)
            later = self.saved_model(os.path.join(out, "saved_later"), images)
            np.testing.assert_allclose(later.sum(axis=1), np.ones(5), rtol=1e-5)
            np.testing.assert_array_equal(
                later, self.saved_model(os.path.join(out, "saved_at_end"), images)
            )
            np.testing.assert_array_equal(later, self.restored(checkpoint, images))
            names = dict(tf.train.list_variables(checkpoint))
            self.assertEqual(names["hid_w"], [784, 100])
            self.assertLessEqual(
                {"global_step", "beta1_power", "sm_w/Adam", "sm_w/Adam_1"}, set(names)
            )

    def saved_model(self, path, images):
        with tf.Graph().as_default(), tf.Session() as sess:
            signature = tf.saved_model.loader.load(sess, ["serve"], path).signature_def[
                "serving_default"
            ]
            return sess.run(
                signature.outputs["probabilities"].name, {signature.inputs["x"].name: images}
            )

    def restored(self, checkpoint, images):
        with tf.Graph().as_default(), tf.Session() as sess:
            tf.train.import_meta_graph(checkpoint + ".meta", clear_devices=True).restore(
                sess, checkpoint
            )
            self.assertEqual(len(tf.trainable_variables()), 4)
            self.assertEqual(tf.train.get_global_step().op.name, "global_step")
            return sess.run("probabilities:0", {"x:0": images})
