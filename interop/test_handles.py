"""Session tensors, which persist between steps. TensorFlow's own servers do not support them."""

import numpy as np
import tensorflow.compat.v1 as tf

from interop import clustertest


class SessionHandleTest(clustertest.ClusterTest):
    jobs = {"worker": 1}

    def test_handles(self):
        session = self.session()
        with tf.device("/job:worker/task:0/cpu:0"):
            x = tf.placeholder(tf.float32, [2])
            keep = tf.get_session_handle(x * x)
        kept = session.run(keep, {x: [3, 4]})
        holder, value = tf.get_session_tensor(kept.handle, tf.float32)
        np.testing.assert_array_equal(session.run(value + 1, {holder: kept.handle}), [10, 17])
        np.testing.assert_array_equal(kept.eval(), [9, 16])
        # A handle can be fed instead of a tensor.
        np.testing.assert_array_equal(session.run(x + 1, {x: kept}), [10, 17])
        again = session.run(keep, {x: kept})
        np.testing.assert_array_equal(again.eval(), [81, 256])
        kept.delete()
        self.assert_raises(
            tf.errors.InvalidArgumentError,
            "is not in the session store",
            value,
            {holder: kept.handle},
            session,
        )

    def test_handles_belong_to_their_session(self):
        with tf.device("/job:worker/task:0/cpu:0"):
            keep = tf.get_session_handle(tf.constant(5))
        one, other = self.session(), self.session()
        handle = one.run(keep).handle
        holder, value = tf.get_session_tensor(handle, tf.int32)
        self.assert_raises(
            tf.errors.InvalidArgumentError,
            "is not in the session store",
            value,
            {holder: handle},
            other,
        )
