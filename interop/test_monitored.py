"""Between-graph training in monitored sessions: hooks, checkpoints, summaries and a supervisor."""

import glob
import os
import tempfile
import threading

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest, run_concurrently
from interop.models import Network, digits

STEPS, BATCH = 60, 50


class SessionCreated(tf.train.SessionRunHook):
    """Sets an event once the chief has initialized the variables.

    Other workers start after it, because they would otherwise poll only every 30 s.
    """

    def __init__(self, created):
        self.created = created

    def after_create_session(self, session, coord):
        self.created.set()


class MonitoredTraining(ClusterTest):
    mixes = ["weft", "tf-ps"]

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = folder.name

    def check(self, use_resource=False, synchronous=False):
        """Trains with two workers. The chief writes checkpoints and summaries."""
        data = digits(1000)
        created, losses = threading.Event(), {}

        def client(i):
            try:
                if i > 0:
                    self.assertTrue(created.wait(100))
                losses[i] = self.train(i, data, use_resource, synchronous, created)
            finally:
                created.set()

        run_concurrently(client, 2)
        for i in range(2):
            self.assertLess(losses[i][-1], losses[0][0] / 2, losses[i])
        checkpoint = tf.train.latest_checkpoint(self.dir)
        reader = tf.train.load_checkpoint(checkpoint)
        self.assertGreaterEqual(reader.get_tensor("global_step"), STEPS)
        self.assertIn("network/w1/Adam", reader.get_variable_to_shape_map())
        events, *_ = glob.glob(os.path.join(self.dir, "*tfevents*"))
        tags = {v.tag for e in tf.train.summary_iterator(events) for v in e.summary.value}
        self.assertIn("loss", tags)

    def train(self, i, data, use_resource, synchronous, created):
        graph, chief, worker = tf.Graph(), i == 0, f"/job:worker/task:{i}"
        # Without a container, the variables of one test would be those of the next.
        with graph.as_default(), graph.container(self._testMethodName.replace("_", ".")):
            spec = tf.train.ClusterSpec(self.cluster.spec)
            optimizer = tf.train.AdamOptimizer(0.005)
            hooks = [tf.train.StopAtStepHook(last_step=STEPS)]
            if synchronous:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2, total_num_replicas=2)
                hooks.append(optimizer.make_session_run_hook(chief))
            with tf.device(tf.train.replica_device_setter(worker_device=worker, cluster=spec)):
                network = Network(optimizer, use_resource)
                tf.summary.scalar("loss", network.loss)
            files = {}
            if chief:
                hooks.append(SessionCreated(created))
                files = dict(
                    checkpoint_dir=self.dir, save_checkpoint_steps=20, save_summaries_steps=10
                )
            config = tf.ConfigProto(device_filters=["/job:ps", worker])
            losses = []
            with tf.train.MonitoredTrainingSession(
                master=self.cluster.target("worker", i),
                is_chief=chief,
                hooks=hooks,
                config=config,
                stop_grace_period_secs=5,
                **files,
            ) as sess:
                while not sess.should_stop():
                    feeds = network.feeds(data, 2 * len(losses) + i, BATCH)
                    losses.append(sess.run([network.loss, network.train], feeds)[0])
            return losses

    def test_reference_variables(self):
        self.check()

    def test_resource_variables(self):
        self.check(use_resource=True)

    def test_synchronous_replicas(self):
        self.check(synchronous=True)

    def test_a_supervisor_initializes_and_saves(self):
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable(
                "supervised", [], initializer=tf.zeros_initializer(), use_resource=False
            )
            step = tf.train.get_or_create_global_step()
            update = tf.group(tf.assign_add(v, 2.0), tf.assign_add(step, 1))
        supervisor = tf.train.Supervisor(
            is_chief=True,
            logdir=self.dir,
            global_step=step,
            save_model_secs=0,
            save_summaries_secs=0,
        )
        sess = supervisor.prepare_or_wait_for_session(self.cluster.target())
        for _ in range(5):
            sess.run(update)
        np.testing.assert_array_equal(sess.run([v, step]), [10, 5])
        supervisor.saver.save(sess, supervisor.save_path, global_step=step)
        supervisor.stop()
        self.assertEqual(tf.train.load_checkpoint(self.dir).get_tensor("supervised"), 10.0)
