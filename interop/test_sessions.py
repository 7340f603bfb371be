"""Sessions on a remote master: growing graphs, feeds, shared variables and errors."""

import numpy as np
import tensorflow.compat.v1 as tf

from interop.clustertest import ClusterTest, run_concurrently


class Sessions(ClusterTest):
    mixes = ["weft", "tf-worker", "tf-ps"]

    def test_hello(self):
        self.assertEqual(
            self.session().run(tf.constant("Hello, distributed TensorFlow!")),
            b"Hello, distributed TensorFlow!",
        )

    def test_graph_grows_between_steps(self):
        sess = self.session()
        x = tf.placeholder(tf.float32, [2])
        y = x
        for i in range(4):
            with tf.device("/job:worker/task:%d" % (i % 2)):
                y = y * 2.0
            np.testing.assert_array_equal(
                sess.run(y, {x: [1.0, -1.0]}), np.array([1.0, -1.0]) * 2.0 ** (i + 1)
            )

    def test_fed_tensors_replace_computed_ones(self):
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:ps/task:0"):
            y = x * 2.0
        with tf.device("/job:worker/task:1"):
            z = y + 1.0
        self.assertEqual(self.session().run([z, y], {y: 10.0}), [11.0, 10.0])

    def test_two_masters_share_variables(self):
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable(
                "shared", [2], initializer=tf.zeros_initializer(), use_resource=False
            )
            add = tf.assign_add(v, [1.0, 2.0])
        first, second = self.session(0), self.session(1)
        first.run(v.initializer)
        first.run(add)
        np.testing.assert_array_equal(second.run(add), [2.0, 4.0])

    def test_containers_keep_variables_apart(self):
        graphs = {}
        for name in ("box", "other"):
            with tf.Graph().as_default() as g, g.container(name), tf.device("/job:ps/task:0"):
                v = tf.get_variable(
                    "contained", [], initializer=tf.ones_initializer(), use_resource=False
                )
                graphs[name] = g, v
        (g, v), (other, unset) = graphs["box"], graphs["other"]
        sess = self.session(graph=g)
        sess.run(v.initializer)
        self.assertEqual(sess.run(v), 1.0)
        self.assert_raises(
            tf.errors.FailedPreconditionError,
            "uninitialized",
            unset,
            session=self.session(graph=other),
        )

    def test_reset_forgets_a_container_and_ends_sessions(self):
        with tf.Graph().as_default() as g, g.container("box"), tf.device("/job:ps/task:0"):
            v = tf.get_variable("boxed", [], initializer=tf.ones_initializer(), use_resource=False)
        before = tf.Session(self.cluster.target(), graph=g)
        before.run(v.initializer)
        self.assertEqual(before.run(v), 1.0)
        tf.Session.reset(self.cluster.target(), containers=["box"])
        self.assert_raises(tf.errors.AbortedError, "is not found", v, session=before)
        self.assertRaises(tf.errors.AbortedError, before.close)
        self.assert_raises(
            tf.errors.FailedPreconditionError, "uninitialized", v, session=self.session(graph=g)
        )

    def test_errors_name_the_operation_and_leave_the_session_usable(self):
        x = tf.placeholder(tf.float32, name="x")
        with tf.device("/job:ps/task:0"):
            product = tf.matmul(x, tf.ones([3, 2]), name="product")
            checked = tf.Print(tf.debugging.check_numerics(x, "not finite"), [x])
        never = tf.get_variable("never", [1], use_resource=False)
        sess = self.session()
        kind = tf.errors.InvalidArgumentError
        # the text of TensorFlow 2.4 and earlier differs in the rest
        self.assert_raises(kind, "In[0]", product, {x: np.ones((2, 4))}, session=sess)
        self.assert_raises(kind, "node product", product, {x: np.ones((2, 4))}, session=sess)
        self.assert_raises(kind, "not finite", checked, {x: [1.0, np.inf]}, session=sess)
        self.assert_raises(
            kind, "You must feed a value for placeholder tensor 'x'", product, session=sess
        )
        self.assert_raises(tf.errors.FailedPreconditionError, "never", never, session=sess)
        np.testing.assert_array_equal(sess.run(product, {x: np.ones((1, 3))}), [[3.0, 3.0]])

    def test_many_clients_at_once(self):
        wrong = []

        def client(i):
            with tf.Graph().as_default(), tf.Session(self.cluster.target("worker", i % 2)) as sess:
                x = tf.placeholder(tf.float32, [])
                with tf.device("/job:ps/task:0"):
                    y = x * 3.0
                wrong.extend(k for k in range(5) if sess.run(y, {x: i + k}) != 3.0 * (i + k))

        run_concurrently(client, 100)
        self.assertEqual(wrong, [])
