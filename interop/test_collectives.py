"""Collective operations of a group of devices, some of them on TensorFlow's tasks."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ops import collective_ops, gen_collective_ops

from interop import clustertest

SIZE = 3
LEADER = "/job:worker/replica:0/task:0"
CONFIG = tf.ConfigProto(experimental=tf.ConfigProto.Experimental(collective_group_leader=LEADER))


def ramp(i, n, dtype):
    """Returns small numbers that differ between devices and have exact sums in every type."""
    return ((np.arange(n) % 7) * (i + 1) + 1).astype(dtype)


class GroupTest(clustertest.ClusterTest):
    jobs = {"worker": SIZE}

    def each(self, build):
        """Returns build(i) for each device i."""
        out = []
        for i in range(SIZE):
            with tf.device(f"/job:worker/task:{i}"):
                out.append(build(i))
        return out

    def run_all(self, fetches, session=None):
        options = tf.RunOptions(timeout_in_ms=300000)
        return (session or self.session(config=CONFIG)).run(fetches, options=options)


class CollectiveTest(GroupTest):
    mixes = ["weft", "tf-master", "tf-worker"]

    def test_reductions(self):
        cases = []
        instance = 1
        for dtype in (np.float32, np.float64, np.float16, np.int32, np.int64):
            for n in (1, 15, 16, 17, 64, 1000):
                for merge, final, want in (
                    ("Add", "Div", lambda x: np.sum(x, 0, dtype=x.dtype) / SIZE),
                    ("Max", "Id", lambda x: np.max(x, 0)),
                    ("Mul", "Id", lambda x: np.prod(x, 0, dtype=x.dtype)),
                ):
                    out = self.each(
                        lambda i: collective_ops.all_reduce(
                            tf.constant(ramp(i, n, dtype)), SIZE, 10, instance, merge, final
                        )
                    )
                    cases.append(
                        (
                            out,
                            want(np.stack([ramp(i, n, dtype) for i in range(SIZE)])).astype(dtype),
                        )
                    )
                    instance += 1
        session = self.session(config=CONFIG)
        for _ in range(2):
            for got, (_, want) in zip(self.run_all([out for out, _ in cases], session), cases):
                for device in got:
                    np.testing.assert_allclose(
                        device, want, rtol=1e-3 if want.dtype == np.float16 else 1e-6
                    )

    def test_gather_and_broadcast(self):
        gathered = self.each(
            lambda i: collective_ops.all_gather(tf.constant(ramp(i, 5, np.float32)), SIZE, 11, 1)
        )
        sent = [
            self.each(
                lambda i: (
                    collective_ops.broadcast_send(
                        tf.constant([1.0, 2.0, 3.0]), [3], tf.float32, SIZE, 11, 2 + source
                    )
                    if i == source
                    else collective_ops.broadcast_recv([3], tf.float32, SIZE, 11, 2 + source)
                )
            )
            for source in range(SIZE)
        ]
        got, received = self.run_all([gathered, sent])
        for device in got:
            np.testing.assert_array_equal(
                device, np.concatenate([ramp(i, 5, np.float32) for i in range(SIZE)])
            )
        np.testing.assert_array_equal(
            np.stack(received), np.broadcast_to([1, 2, 3], [SIZE, SIZE, 3])
        )

    def test_version_2_operations(self):
        reduced = self.each(
            lambda i: collective_ops.all_reduce_v2(
                tf.constant(ramp(i, 100, np.float32)), SIZE, 12, 1, "Add", "Id"
            )
        )
        exchanged = self.each(
            lambda i: gen_collective_ops.collective_all_to_all_v2(
                tf.constant([[10.0 * i + j, j] for j in range(SIZE)]), SIZE, 12, 2, []
            )
        )
        reduced, exchanged = self.run_all([reduced, exchanged])
        for device in reduced:
            np.testing.assert_array_equal(
                device, sum(ramp(i, 100, np.float32) for i in range(SIZE))
            )
        for j, device in enumerate(exchanged):
            np.testing.assert_array_equal(device, [[10 * i + j, j] for i in range(SIZE)])

    def test_between_graphs(self):
        """Each replica has its own graph, client and master."""

        def replica(i):
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{i}"):
                x = tf.placeholder(tf.float32, [2])
                total = collective_ops.all_reduce(x, SIZE, 13, 1, "Add", "Id")
                with tf.Session(self.cluster.target("worker", i), config=CONFIG) as session:
                    for step in range(10):
                        got = session.run(
                            total, {x: [i, step]}, options=tf.RunOptions(timeout_in_ms=300000)
                        )
                        np.testing.assert_array_equal(got, [3, 3 * step])

        clustertest.run_concurrently(replica, SIZE)


class DisagreementTest(GroupTest):
    """Not on mixed clusters: TensorFlow's tasks must be restarted after a collective error."""

    def test_disagreement_is_an_error(self):
        session = self.session(config=CONFIG)
        for attempt in range(2):
            out = self.each(
                lambda i: collective_ops.all_reduce(
                    tf.constant(ramp(i, 5 + i, np.float32)), SIZE, 14, 1 + attempt, "Add", "Id"
                )
            )
            self.assert_raises(
                tf.errors.InvalidArgumentError,
                "Shape mismatch in the collective instance",
                out,
                session=session,
            )
        out = self.each(
            lambda i: collective_ops.all_reduce(
                tf.constant(ramp(i, 5, np.float32)), SIZE, 14, 3, "Add", "Id"
            )
        )
        np.testing.assert_array_equal(
            self.run_all(out, session)[0], sum(ramp(i, 5, np.float32) for i in range(SIZE))
        )
