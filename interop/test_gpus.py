"""GPU devices of workers, whose results must be those of a session in this process."""

import json
import subprocess
import sys
import unittest

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.client import timeline
from tensorflow.python.ops import collective_ops

from interop import cluster, models
from interop.clustertest import ClusterTest

PS = "/job:ps/task:0/cpu:0"
LEADER = "/job:worker/replica:0/task:0"
STEPS = 8


def gpu(task, number):
    """Returns the name of a GPU of a worker."""
    return f"/job:worker/task:{task}/device:GPU:{number}"


GPUS = [gpu(task, number) for task in (0, 1) for number in (0, 1)]


class GpuTest(ClusterTest):
    """Tests on servers that have two GPUs each."""

    server = cluster.WEFT_GPU

    @classmethod
    def setUpClass(cls):
        if cls.mix == "tf":
            raise unittest.SkipTest("TensorFlow's servers have no GPUs in software")
        if sys.platform != "linux":
            raise unittest.SkipTest("make builds the program with GPU devices on Linux only")
        super().setUpClass()


def average(tower_gradients):
    """Returns the mean of the gradients of the towers for each variable."""
    return [
        (tf.reduce_mean(tf.stack([g for g, _ in of_one]), 0), of_one[0][1])
        for of_one in zip(*tower_gradients)
    ]


def perceptron(x, y, variable):
    hidden = tf.nn.relu(tf.nn.xw_plus_b(x, variable("w1", [784, 32]), variable("b1", [32])))
    logits = tf.nn.xw_plus_b(hidden, variable("w2", [32, 10]), variable("b2", [10]))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))


def convolutional(x, y, variable):
    """The network of the CIFAR-10 tutorial, with fewer channels."""
    norm = tf.reshape(x, [-1, 28, 28, 1])
    for i, channels in enumerate((8, 16)):
        kernel = variable(f"conv{i}", [5, 5, norm.shape[-1], channels])
        conv = tf.nn.conv2d(norm, kernel, [1, 1, 1, 1], padding="SAME")
        conv = tf.nn.relu(tf.nn.bias_add(conv, variable(f"bias{i}", [channels])))
        norm = tf.nn.lrn(conv, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
        norm = tf.nn.max_pool(norm, [1, 3, 3, 1], [1, 2, 2, 1], padding="SAME")
    flat = tf.reshape(norm, [-1, 7 * 7 * 16])
    weights = variable("local", [7 * 7 * 16, 32])
    local = tf.nn.relu(tf.matmul(flat, weights) + variable("bias", [32]))
    logits = tf.nn.xw_plus_b(local, variable("softmax", [32, 10]), variable("bias_softmax", [10]))
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels=tf.argmax(y, 1), logits=logits
    )
    return tf.reduce_mean(entropy) + 0.001 * tf.nn.l2_loss(weights)


def train(target, network, devices, ps, optimizer, batch=8):
    """Returns the losses of a network with a tower on each device and the variables on a CPU."""
    with tf.Graph().as_default():

        def variable(name, shape):
            with tf.device(ps):
                initializer = tf.truncated_normal_initializer(stddev=0.05, seed=1)
                return tf.get_variable(name, shape, initializer=initializer)

        gradients, losses, feeds = [], [], []
        for i, device in enumerate(devices):
            with tf.device(device), tf.variable_scope("network", reuse=i > 0):
                x = tf.placeholder(tf.float32, [batch, 784])
                y = tf.placeholder(tf.float32, [batch, 10])
                losses.append(network(x, y, variable))
                gradients.append(optimizer().compute_gradients(losses[-1]))
                feeds.append((x, y))
        with tf.device(ps):
            loss = tf.add_n(losses) / len(losses)
            step = optimizer().apply_gradients(average(gradients))
        images, labels = models.digits(batch * len(devices))
        values = {}
        for i, (x, y) in enumerate(feeds):
            values[x] = images[i * batch : (i + 1) * batch]
            values[y] = labels[i * batch : (i + 1) * batch]
        with tf.Session(target) as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run([loss, step], values)[0] for _ in range(STEPS)]


class Gpus(GpuTest):
    def check_losses(self, network, devices, optimizer):
        expected = train("", network, ["/cpu:0"] * len(devices), "/cpu:0", optimizer)
        got = train(self.cluster.target(), network, devices, PS, optimizer)
        np.testing.assert_allclose(got, expected, rtol=1e-4)
        self.assertLess(got[-1], got[0])

    def test_every_gpu_is_listed(self):
        devices = {d.name: d for d in self.session().list_devices()}
        for name in GPUS:
            full = name.replace("/task", "/replica:0/task")
            self.assertEqual(devices[full].device_type, "GPU")
            self.assertGreater(devices[full].memory_limit_bytes, 1 << 30)

    def test_a_plus_b_on_a_gpu_by_every_name(self):
        for name in ["/gpu:0", "/device:GPU:1", "/GPU:1", "gpu:0", gpu(1, 1)]:
            with tf.device(name):
                a, b = tf.constant([1.0, 2.0]), tf.placeholder(tf.float32, [2])
                c = tf.add(a, b, name="sum")
            metadata = tf.RunMetadata()
            got = self.session().run(
                c,
                {b: [10.0, 20.0]},
                options=tf.RunOptions(output_partition_graphs=True),
                run_metadata=metadata,
            )
            np.testing.assert_array_equal(got, [11.0, 22.0])
            placed = {n.name: n.device for g in metadata.partition_graphs for n in g.node}
            self.assertIn("/device:GPU:", placed[c.op.name])

    def test_a_gpu_is_preferred_where_there_is_a_kernel(self):
        x = tf.placeholder(tf.float32, [2], name="x")
        product = tf.multiply(x, x, name="product")
        text = tf.strings.as_string(product, name="text")
        metadata = tf.RunMetadata()
        got = self.session().run(
            text,
            {x: [2.0, 3.0]},
            options=tf.RunOptions(output_partition_graphs=True),
            run_metadata=metadata,
        )
        self.assertEqual([float(t) for t in got], [4.0, 9.0])
        placed = {n.name: n.device for g in metadata.partition_graphs for n in g.node}
        self.assertIn("/device:GPU:0", placed["product"])
        self.assertIn("/device:CPU:0", placed["text"])

    def test_an_impossible_gpu_is_an_error_unless_placement_is_soft(self):
        x = tf.placeholder_with_default(2.0, [])
        with tf.device("/gpu:7"):
            a = tf.negative(x, name="nowhere")
        for text in ["Cannot assign a device for operation nowhere", "/device:GPU:1 ]. Make sure"]:
            self.assert_raises(tf.errors.InvalidArgumentError, text, a)
        soft = self.session(config=tf.ConfigProto(allow_soft_placement=True))
        self.assertEqual(soft.run(a), -2.0)

    def test_an_operation_without_kernel_is_an_error_unless_placement_is_soft(self):
        with tf.device("/gpu:0"):
            text = tf.strings.join(["a", "b"])
        self.assert_raises(
            tf.errors.InvalidArgumentError, "no supported kernel for GPU devices is available", text
        )
        soft = self.session(config=tf.ConfigProto(allow_soft_placement=True))
        self.assertEqual(soft.run(text), b"ab")

    def test_a_full_gpu_fails_the_step_and_not_the_task(self):
        size = tf.placeholder(tf.int32, [1])
        with tf.device("/gpu:1"):
            total = tf.reduce_sum(tf.fill(size, 1.0))
        sess = self.session()
        self.assert_raises(
            tf.errors.ResourceExhaustedError,
            "OOM when allocating tensor with shape[1073741824] and type float on "
            "/job:worker/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc",
            total,
            {size: [1 << 30]},
            sess,
        )
        self.assertEqual(sess.run(total, {size: [100]}), 100)

    def test_perceptron_with_two_towers(self):
        self.check_losses(perceptron, GPUS[:2], lambda: tf.train.GradientDescentOptimizer(0.5))

    def test_perceptron_with_two_gpus_on_each_of_two_workers(self):
        self.check_losses(perceptron, GPUS, lambda: tf.train.AdamOptimizer(0.01))

    def test_cifar10_network_with_two_towers(self):
        self.check_losses(
            convolutional, GPUS[:2], lambda: tf.train.MomentumOptimizer(0.05, 0.9)
        )

    def test_all_reduce_on_the_gpus_of_one_and_of_two_tasks(self):
        experimental = tf.ConfigProto.Experimental(collective_group_leader=LEADER)
        sess = self.session(config=tf.ConfigProto(experimental=experimental))
        for devices in (GPUS[:2], GPUS):
            sums, expected = [], 0.0
            for i, device in enumerate(devices):
                with tf.device(device):
                    x = tf.placeholder_with_default([2.0**i, 1.0], [2])
                    n = len(devices)
                    sums.append(collective_ops.all_reduce(x * 3.0, n, n, 1, "Add", "Id"))
                expected += 3.0 * 2.0**i
            options = tf.RunOptions()
            options.experimental.collective_graph_key = len(devices)
            for got in sess.run(sums, options=options):
                np.testing.assert_array_equal(got, [expected, 3.0 * len(devices)])

    def test_a_trace_has_the_streams_of_the_gpu(self):
        with tf.device("/gpu:0"):
            x = tf.placeholder(tf.float32, [64, 64])
            y = tf.matmul(tf.exp(x, name="power"), x, name="product")
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self.session().run(y, {x: np.ones([64, 64])}, options=options, run_metadata=metadata)
        stats = {d.device: d.node_stats for d in metadata.step_stats.dev_stats}
        names = {n.node_name for n in stats["/device:GPU:0/stream:all"]}
        self.assertTrue({"power", "product"} <= names, names)
        self.assertIn("MemcpyH2D", {n.node_name for n in stats["/device:GPU:0/memcpy"]})
        allocators = {
            m.allocator_name
            for n in stats["/job:worker/replica:0/task:0/device:GPU:0"]
            for m in n.memory
        }
        self.assertIn("GPU_0_bfc", allocators)
        trace = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format())
        rows = {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
        self.assertIn("/device:GPU:0/stream:all Compute", rows)


class EagerGpus(GpuTest):
    def test_eager_programs_of_tensorflow_2(self):
        program = cluster.ROOT / "interop" / "tf2" / "gpus.py"
        done = subprocess.run(
            [sys.executable, program, json.dumps(self.cluster.spec)],
            env=cluster.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=200,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-3000:])
        self.assertEqual(done.stdout.splitlines()[-1], "ok")


class MixedGpus(GpuTest):
    """Clusters of tasks of Weft with GPUs and tasks of TensorFlow.

    The master is Weft's: TensorFlow's without CUDA finds no kernels for GPUs.
    """

    mixes = ["weft", "tf-worker", "tf-ps"]

    def test_values_cross_from_and_to_gpus(self):
        x = tf.placeholder(tf.float32, [])
        with tf.device("/job:worker/task:1/cpu:0"):
            a = tf.add(x, [[1.0, 2.0], [3.0, 4.0]])
        with tf.device(gpu(0, 0)):
            b = tf.matmul(a, a)
            c = tf.shape(b)
        with tf.device(gpu(0, 1)):
            d = tf.reduce_sum(b, 0)
            e = tf.exp(b - 10.0)
        with tf.device("/job:ps/task:0/cpu:0"):
            f = d + tf.reduce_sum(e)
        with tf.device("/job:worker/task:1/cpu:0"):
            g = tf.cast(c, tf.float32) + f + d
        got = self.session().run([f, g, b], {x: 0.5})
        b_want = np.matmul([[1.5, 2.5], [3.5, 4.5]], [[1.5, 2.5], [3.5, 4.5]])
        f_want = b_want.sum(0) + np.exp(b_want - 10).sum()
        np.testing.assert_allclose(got[0], f_want, rtol=1e-5)
        np.testing.assert_allclose(got[1], f_want + b_want.sum(0) + 2, rtol=1e-5)
        np.testing.assert_allclose(got[2], b_want, rtol=1e-5)

    def test_training_with_variables_on_a_parameter_server(self):
        def optimizer():
            return tf.train.GradientDescentOptimizer(0.5)

        expected = train("", perceptron, ["/cpu:0"] * 2, "/cpu:0", optimizer)
        got = train(
            self.cluster.target(), perceptron, [gpu(0, 0), gpu(0, 1)], PS, optimizer
        )
        np.testing.assert_allclose(got, expected, rtol=1e-4)
