"""Loops, conditions and functions with nodes on several tasks."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import function
from tensorflow.python.ops import functional_ops, gen_functional_ops

from interop.clustertest import ClusterTest, run_concurrently

PS = "/job:ps/task:0"
OWN = "/job:worker/task:0"
OTHER = "/job:worker/task:1"


def on(device, f):
    """Returns f with its nodes on a device."""

    def placed(*args):
        with tf.device(device):
            return f(*args)

    return placed


class Functional(ClusterTest):
    """The same programs with control flow of version 1 (frames) and version 2 (functions)."""

    mixes = ["weft", "tf-master", "tf-worker", "tf-ps"]

    def both(self, build):
        """Yields build() for each version."""
        for enable in (tf.disable_control_flow_v2, tf.enable_control_flow_v2):
            enable()
            try:
                with self.subTest(enable.__name__), tf.Graph().as_default():
                    yield build()
            finally:
                tf.disable_control_flow_v2()

    def test_a_loop_over_tasks_and_its_gradient(self):
        def build():
            x, n = tf.placeholder(tf.float32, []), tf.placeholder(tf.int32, [])
            times, plus = on(PS, lambda a: a * x), on(OTHER, lambda a: a + 1.0)
            _, y = tf.while_loop(
                lambda i, a: i < n,
                lambda i, a: (i + 1, plus(times(a))),
                [0, 1.0],
                parallel_iterations=3,
            )
            return x, n, [y, tf.gradients(y, x)[0]]

        for x, n, fetches in self.both(build):
            sess = self.session()
            for k in (0, 1, 5):
                value, slope = 1.0, 0.0
                for _ in range(k):
                    value, slope = value * 1.5 + 1.0, slope * 1.5 + value
                np.testing.assert_allclose(
                    sess.run(fetches, {x: 1.5, n: k}), [value, slope], rtol=1e-6
                )

    def test_loops_in_loops_and_conditions_in_loops(self):
        def build():
            x = tf.placeholder(tf.float32, [])
            half, square = on(PS, lambda a: a * 0.5), on(OTHER, lambda a: a * x)

            def outer(i, a):
                _, b = tf.while_loop(lambda j, _: j <= i, lambda j, b: (j + 1, square(b)), [0, a])
                return i + 1, tf.cond(b > 2.0, lambda: half(b), lambda: b + 1.0)

            _, y = tf.while_loop(lambda i, _: i < 4, outer, [0, 1.0])
            return x, [y, tf.gradients(y, x)[0]]

        for x, fetches in self.both(build):
            value, slope = 1.0, 0.0
            for i in range(4):
                for _ in range(i + 1):
                    value, slope = value * 1.25, slope * 1.25 + value
                value, slope = (value * 0.5, slope * 0.5) if value > 2.0 else (value + 1.0, slope)
            np.testing.assert_allclose(
                self.session().run(fetches, {x: 1.25}), [value, slope], rtol=1e-6
            )

    def test_branches_on_other_tasks(self):
        def build():
            index, p = tf.placeholder(tf.int32, []), tf.placeholder(tf.bool, [])
            with tf.device(PS):
                v = tf.get_variable("v", initializer=2.0, use_resource=True)
            chosen = tf.cond(
                p, on(PS, lambda: v.assign_add(1.0)), on(OTHER, lambda: v.read_value() * 10.0)
            )
            cases = tf.switch_case(
                index,
                [on(d, lambda k=k: tf.constant(k) * 2) for k, d in enumerate([PS, OWN, OTHER])],
            )
            return p, index, chosen, cases

        for p, index, chosen, cases in self.both(build):
            sess = self.session()
            sess.run(tf.global_variables_initializer())
            self.assertEqual(
                [sess.run(chosen, {p: v}) for v in (False, True, False)], [20.0, 3.0, 30.0]
            )
            self.assertEqual([sess.run(cases, {index: k}) for k in (0, 1, 2, 9)], [0, 2, 4, 4])

    def test_arrays_in_loops_over_tasks(self):
        def build():
            x = tf.placeholder(tf.float32, [None])
            y = tf.map_fn(on(PS, lambda v: v * v), x, parallel_iterations=4)
            z = tf.scan(on(OTHER, lambda a, v: a * v + 1.0), x)
            return x, [y, z] + tf.gradients(y, x)

        for x, fetches in self.both(build):
            y, z, dx = self.session().run(fetches, {x: [1.0, 2.0, 3.0]})
            np.testing.assert_array_equal(y, [1.0, 4.0, 9.0])
            np.testing.assert_array_equal(z, [1.0, 3.0, 10.0])
            np.testing.assert_array_equal(dx, [2.0, 4.0, 6.0])


class Calls(ClusterTest):
    cpu_devices = 2
    mixes = ["weft", "tf-master", "tf-worker", "tf-ps"]

    def test_a_function_with_nodes_on_all_tasks(self):
        @tf.function
        def f(x):
            y = on(PS, lambda: x * 2.0)()
            return on(OTHER, lambda: y + 1.0)()

        y = f(tf.constant(3.0))
        z = y + 1.0
        sess = self.session()
        self.assertEqual(sess.run(z), 8.0)
        self.assertEqual(sess.run(z, {y: 1.0}), 2.0)

    def test_effects_of_a_call_happen_before_its_results(self):
        with tf.device(OWN):
            v = tf.get_variable("v", initializer=1.0, use_resource=True)

        @tf.function
        def f(x):
            v.assign_add(x)
            return x * 2.0

        sess = self.session()
        sess.run(tf.global_variables_initializer())
        self.assertEqual(sess.run(f(tf.constant(3.0)) + 1.0), 7.0)
        self.assertEqual(sess.run(v), 4.0)

    def test_a_call_of_another_device(self):
        @function.Defun(tf.float32, tf.float32)
        def f(a, b):
            return a * b, a + b

        targets = [
            f"/job:{job}/replica:0/task:{task}/device:CPU:{i}"
            for job, task in [("ps", 0), ("worker", 0), ("worker", 1)]
            for i in (0, 1)
        ]
        calls = [
            functional_ops.remote_call(
                args=[tf.constant(3.0), tf.constant(4.0)], Tout=[tf.float32] * 2, f=f, target=t
            )
            for t in targets
        ]
        sess = self.session()
        run_concurrently(
            lambda _: self.assertEqual(sess.run(calls), [[12.0, 7.0]] * len(targets)), 8
        )

    def test_a_call_of_another_device_that_fails(self):
        @function.Defun(tf.float32)
        def f(a):
            return tf.check_numerics(a / 0.0, "not a number")

        def call(target):
            return functional_ops.remote_call(
                args=[tf.constant(1.0)], Tout=[tf.float32], f=f, target=target
            )

        ps = "/job:ps/replica:0/task:0/device:CPU:%d"
        self.assert_raises(tf.errors.InvalidArgumentError, "not a number", call(ps % 0))
        self.assert_raises(tf.errors.InvalidArgumentError, "unknown device", call(ps % 9))
        self.assert_raises(
            tf.errors.InvalidArgumentError,
            "Could not find worker with target",
            call("/job:x/replica:0/task:0/device:CPU:0"),
        )
        self.assert_raises(
            tf.errors.InvalidArgumentError,
            "Could not parse garbage into a device specification",
            call("garbage"),
        )

    def test_a_function_that_is_not_inlined_is_spread_if_the_session_knows_the_devices(self):
        @function.Defun(tf.float32, noinline=True)
        def f(a):
            b = on(PS, lambda: a * 2.0)()
            return on(OTHER + "/cpu:1", lambda: b + a)()

        f.add_to_graph(tf.get_default_graph())
        with tf.device(OWN + "/cpu:0"):
            y = gen_functional_ops.stateful_partitioned_call(
                args=[tf.constant(4.0)], Tout=[tf.float32], f=f
            )
        sess = self.session(config=tf.ConfigProto(share_cluster_devices_in_session=True))
        for _ in range(3):
            self.assertEqual(sess.run(y), [12.0])
        self.assert_raises(
            tf.errors.InvalidArgumentError, "Cannot assign a device for operation mul", y
        )
