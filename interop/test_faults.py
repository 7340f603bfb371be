"""Tasks that start late, and tasks that are killed and started again."""

import tempfile
import threading

import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest

PS = ("ps", 0)


class LateTasks(ClusterTest):
    def test_a_session_waits_for_a_task_that_starts_later(self):
        self.cluster.kill(*PS)
        results = []
        with tf.device("/job:ps/task:0"):
            y = tf.constant(3.0) * 2.0
        sess = self.session()
        client = threading.Thread(target=lambda: results.append(sess.run(y)), daemon=True)
        client.start()
        client.join(1)
        self.assertEqual(results, [])
        self.cluster.start(*PS)
        client.join(300)
        self.assertEqual(results, [6.0])


class RestartedTasks(ClusterTest):
    def restart(self):
        self.cluster.kill(*PS)
        self.cluster.start(*PS)
        self.cluster.wait(*PS)

    def test_a_step_on_a_restarted_task_fails(self):
        with tf.device("/job:ps/task:0"):
            y = tf.placeholder_with_default(1.0, []) + 1.0
        sess = self.session()
        self.assertEqual(sess.run(y), 2.0)
        self.restart()
        with self.assertRaises((tf.errors.AbortedError, tf.errors.UnavailableError)):
            sess.run(y)
        self.assertEqual(self.session().run(y), 2.0)

    def test_a_monitored_session_recovers_from_its_checkpoint(self):
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable(
                "counted", [], initializer=tf.zeros_initializer(), use_resource=False
            )
            step = tf.train.get_or_create_global_step()
            update = tf.group(tf.assign_add(v, 1.0), tf.assign_add(step, 1))
        with (
            tempfile.TemporaryDirectory() as folder,
            tf.train.MonitoredTrainingSession(
                self.cluster.target(), checkpoint_dir=folder, save_checkpoint_steps=5
            ) as sess,
        ):
            for _ in range(20):
                sess.run(update)
            self.restart()
            for _ in range(10):
                sess.run(update)
            value, steps = sess.run([v, step])
        self.assertEqual(value, steps)
        self.assertGreaterEqual(steps, 21)  # the checkpoint of step 10 or later, and ten more steps
