"""Eager operations, variables and functions on the GPUs of a cluster: gpus.py SPEC"""

import json
import sys

import numpy as np
import tensorflow as tf

spec = json.loads(sys.argv[1])
tf.config.experimental_connect_to_host(spec["worker"], job_name="worker")
gpus = [d.name for d in tf.config.list_logical_devices("GPU")]
assert len(gpus) == 4, gpus

matrix = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
expected = matrix
last = tf.constant(matrix)
for name in gpus:
    with tf.device(name):
        product = tf.matmul(tf.constant(matrix), matrix)
        assert product.device == name, product.device
        np.testing.assert_array_equal(product.numpy(), matrix @ matrix)
        shape = tf.shape(product)  # in the memory of the host
        np.testing.assert_array_equal((shape * 2).numpy(), [4, 4])

        v = tf.Variable([1.0, 2.0])
        v.assign_add([1.0, 1.0])
        np.testing.assert_array_equal(v.numpy(), [2.0, 3.0])

        @tf.function
        def step(x, v=v):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(x * v))
            v.assign_sub(0.1 * tape.gradient(loss, v))
            return loss

        np.testing.assert_allclose(step(tf.constant([1.0, 2.0])).numpy(), 40.0)
        np.testing.assert_allclose(v.numpy(), [1.6, 0.6], rtol=1e-5)
        last = last + 1.0  # from the GPU before this one
        expected = expected + 1.0
np.testing.assert_array_equal(last.numpy(), expected)

with tf.device(gpus[-1]):
    try:
        tf.reduce_sum(tf.fill([1 << 30], 1.0)).numpy()
        raise AssertionError("more memory than the device has")
    except tf.errors.ResourceExhaustedError as e:
        assert "by allocator GPU_1_bfc" in e.message, e.message
    np.testing.assert_array_equal(tf.fill([2], 1.0).numpy(), [1.0, 1.0])
print("ok")
