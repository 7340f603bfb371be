"""Device names, placement, and placement errors."""

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest

CPU = "/job:%s/replica:0/task:%d/device:CPU:%d"


class Devices(ClusterTest):
    cpu_devices = 2
    mixes = ["weft", "tf-master", "tf-worker"]

    def placed(self, fetches, feed=None, **config):
        """Runs a step. Returns its result and the (type, name) of the nodes on each device."""
        metadata = tf.RunMetadata()
        sess = self.session(config=tf.ConfigProto(**config))
        answer = sess.run(
            fetches,
            feed,
            options=tf.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
        devices = {}
        for graph in metadata.partition_graphs:
            for node in graph.node:
                devices.setdefault(node.device, set()).add((node.op, node.name))
        return answer, devices

    def test_every_device_is_listed(self):
        names = {d.name for d in self.session().list_devices()}
        self.assertEqual(
            names,
            {
                CPU % (job, task, i)
                for job, task in [("ps", 0), ("worker", 0), ("worker", 1)]
                for i in (0, 1)
            },
        )

    def test_two_pinned_variables_are_added(self):
        with tf.device("/job:ps/task:0/cpu:0"):
            a = tf.Variable(1, name="pinned_a")
        with tf.device("/job:ps/task:0/cpu:1"):
            b = tf.Variable(1, name="pinned_b")
        sess = self.session(
            config=tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)
        )
        sess.run(tf.global_variables_initializer())
        self.assertEqual(sess.run(a + b), 2)

    def test_values_cross_devices_and_tasks(self):
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0/cpu:0"):
            a = tf.add(x, [[1.0, 2.0], [3.0, 4.0]], name="first")
        with tf.device("/job:worker/task:1/cpu:1"):
            b = tf.multiply(x, [[10.0], [20.0]], name="second")
        with tf.device("/job:worker/task:0"):
            y = tf.matmul(a, b)
        with tf.device("/job:ps/task:0/cpu:1"):
            z = tf.reduce_sum(y, name="third")
        (y_got, z_got), devices = self.placed([y, z], {x: 1.0})
        np.testing.assert_array_equal(y_got, [[80.0], [140.0]])
        self.assertEqual(z_got, 220.0)
        for device, node in [
            (CPU % ("ps", 0, 0), "first"),
            (CPU % ("worker", 1, 1), "second"),
            (CPU % ("ps", 0, 1), "third"),
        ]:
            self.assertIn(node, {name for _, name in devices[device]})

    def test_an_impossible_device_is_an_error_that_lists_the_possible_ones(self):
        with tf.device("/job:ps/task:7/device:CPU:0"):
            a = tf.constant(1.0, name="nowhere")
        kind = tf.errors.InvalidArgumentError
        self.assert_raises(kind, "Cannot assign a device for operation nowhere", a)
        self.assert_raises(kind, "/job:ps/task:7", a)
        self.assert_raises(kind, CPU % ("worker", 1, 1), a)

    def test_soft_placement_falls_back(self):
        with tf.device("/job:ps/task:0/device:GPU:0"):
            a = tf.placeholder_with_default(2.0, [], name="no_gpu") * 2.0
        config = tf.ConfigProto(allow_soft_placement=True, log_device_placement=True)
        self.assertEqual(self.session(config=config).run(a), 4.0)
        self.assert_raises(tf.errors.InvalidArgumentError, "Cannot assign a device", a)

    def test_device_filters_hide_tasks(self):
        sess = self.session(config=tf.ConfigProto(device_filters=["/job:ps", "/job:worker/task:0"]))
        names = {d.name for d in sess.list_devices()}
        self.assertIn(CPU % ("ps", 0, 0), names)
        with tf.device("/job:worker/task:1"):
            hidden = tf.constant(1.0)
        self.assert_raises(
            tf.errors.InvalidArgumentError, "Cannot assign a device", hidden, session=sess
        )

    def test_colocated_operations_stay_together(self):
        with tf.device("/job:worker/task:1/cpu:1"):
            anchor = tf.placeholder(tf.float32, [2], name="anchor")
        with tf.colocate_with(anchor):
            follower = tf.add(anchor, anchor, name="follower")
        answer, devices = self.placed(follower, {anchor: [1.0, 2.0]})
        np.testing.assert_array_equal(answer, [2.0, 4.0])
        self.assertIn("follower", {name for _, name in devices[CPU % ("worker", 1, 1)]})
