"""Kinds of steps: partial runs, callables, traced steps, and steps that a timeout ends."""

import threading

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline

from interop.clustertest import ClusterTest


class Steps(ClusterTest):
    mixes = ["weft", "tf-master"]

    def on_two_tasks(self):
        """Returns three placeholders, the sum of two on the ps, and its product with the third."""
        a, b, c = (tf.placeholder(tf.float32, [], name) for name in "abc")
        with tf.device("/job:ps/task:0"):
            total = tf.add(a, b, name="total")
        with tf.device("/job:worker/task:0"):
            product = tf.multiply(total, c, name="product")
        return (a, b, c), total, product

    def test_a_partial_run_feeds_and_fetches_in_parts(self):
        (a, b, c), total, product = self.on_two_tasks()
        sess = self.session()
        handle = sess.partial_run_setup([total, product], [a, b, c])
        self.assertEqual(sess.partial_run(handle, total, {a: 1.0, b: 2.0}), 3.0)
        self.assertEqual(sess.partial_run(handle, product, {c: 10.0}), 30.0)

    def test_a_callable_runs_again_with_other_feeds(self):
        (a, b, c), total, product = self.on_two_tasks()
        call = self.session().make_callable([total, product], feed_list=[a, b, c])
        for x in range(5):
            self.assertEqual(call(x, 1.0, 4.0), [x + 1.0, 4.0 * (x + 1.0)])

    def test_a_traced_step_reports_nodes_of_all_devices(self):
        (a, b, c), _, product = self.on_two_tasks()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE, output_partition_graphs=True)
        metadata = tf.RunMetadata()
        got = self.session().run(product, {a: 1.0, b: 2.0, c: 3.0}, options, metadata)
        self.assertEqual(got, 9.0)
        stats = metadata.step_stats.dev_stats
        self.assertTrue(any("/job:ps/" in d.device for d in stats))
        names = {node.node_name for device in stats for node in device.node_stats}
        self.assertLessEqual({"total", "product"}, names)
        self.assertIn(
            "traceEvents", timeline.Timeline(metadata.step_stats).generate_chrome_trace_format()
        )
        self.assertGreaterEqual(len(metadata.partition_graphs), 2)
        ops = {node.op for graph in metadata.partition_graphs for node in graph.node}
        self.assertTrue({"_Send", "_Recv"} <= ops or {"_HostSend", "_HostRecv"} <= ops, ops)


class BlockedSteps(ClusterTest):
    """Steps that wait for an element of an empty queue."""

    def queue(self):
        with tf.device("/job:ps/task:0"):
            return tf.FIFOQueue(1, [tf.float32], [[]], shared_name=self._testMethodName)

    def test_a_timeout_ends_a_step_and_leaves_the_queue_usable(self):
        queue = self.queue()
        element, add = queue.dequeue(), queue.enqueue(2.0)
        sess = self.session()
        with self.assertRaises(tf.errors.DeadlineExceededError):
            sess.run(element, options=tf.RunOptions(timeout_in_ms=300))
        self.assertEqual(sess.run(queue.size()), 0)
        sess.run(add)
        self.assertEqual(sess.run(element), 2.0)

    def test_closing_the_session_cancels_its_steps(self):
        element = self.queue().dequeue()
        sess, other = self.session(), self.session()
        begun, ended = threading.Event(), []

        def client():
            begun.set()
            try:
                sess.run(element)
            except tf.errors.OpError as e:
                ended.append(e)

        thread = threading.Thread(target=client, daemon=True)
        thread.start()
        begun.wait()
        thread.join(0.5)  # the step is now waiting on the server
        self.assertTrue(thread.is_alive())
        sess.close()
        thread.join(60)
        self.assertIsInstance(ended[0], (tf.errors.CancelledError, tf.errors.AbortedError))
        np.testing.assert_equal(other.run(tf.constant(1.0)), 1.0)
