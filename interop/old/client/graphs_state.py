"""Graphs with state on tasks: variables, optimizers, containers, accumulators."""

import numpy as np
import tensorflow as tf
from check import Skip, equal, fails, graph, need, same, values


def fit(tasks, optimizer):
    """A regression whose variables are on the parameter server and whose loss is on worker 1."""
    with tf.device(tasks.ps):
        w = tf.Variable(values(20, 3, 2), name="w")
        b = tf.Variable(tf.zeros([2]), name="b")
        step = tf.Variable(0, trainable=False, name="step")
    with tf.device(tasks.w1):
        x = tf.placeholder(tf.float32, [None, 3])
        loss = tf.reduce_mean(tf.square(tf.sigmoid(tf.matmul(x, w) + b) - 0.25))
        rate = tf.train.exponential_decay(0.5, step, 2, 0.7, staircase=True)
    train = optimizer(rate).minimize(loss, global_step=step)
    return [loss, w, b, step], {x: values(21, 8, 3)}, [train]


@same(steps=4)
def gradient_descent(tasks):
    return fit(tasks, tf.train.GradientDescentOptimizer)


@same(steps=4)
def momentum(tasks):
    return fit(tasks, lambda rate: tf.train.MomentumOptimizer(rate, 0.9))


@same(steps=4)
def adagrad(tasks):
    return fit(tasks, tf.train.AdagradOptimizer)


@same(steps=4)
def adam(tasks):
    return fit(tasks, tf.train.AdamOptimizer)


@same(steps=4)
def rmsprop(tasks):
    return fit(tasks, lambda rate: tf.train.RMSPropOptimizer(rate, 0.9, 0.5, 0.1))


@same(steps=4)
def ftrl(tasks):
    return fit(tasks, lambda rate: tf.train.FtrlOptimizer(rate, l1_regularization_strength=0.01))


@same(steps=3)
def moving_averages(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(1.0)
        averages = tf.train.ExponentialMovingAverage(0.9)
        double = v.assign(v * 2)
        with tf.control_dependencies([double]):
            update = averages.apply([v])
    return [v, averages.average(v)], {}, [update]


@same(steps=2)
def scattered_updates(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(np.zeros((5, 2), np.float32))
        indices = tf.placeholder(tf.int32, [3])
        with tf.device(tasks.w1):
            rows = tf.constant(values(22, 3, 2))
        add = tf.scatter_add(v, indices, rows)
        with tf.control_dependencies([add]):
            update = tf.scatter_update(v, [4], [[1.0, 2.0]])
    return [v, tf.gather(v, [4, 0])], {indices: [0, 3, 0]}, [update]


@same(steps=2)
def variables_in_parts(tasks):
    with tf.device(tasks.ps):
        with tf.variable_scope("parts", partitioner=tf.fixed_size_partitioner(3)):
            table = tf.get_variable("t", [7, 2], initializer=tf.constant_initializer(0.5))
    with tf.device(tasks.w1):
        rows = tf.nn.embedding_lookup(table, [0, 3, 6], partition_strategy="div")
        loss = tf.reduce_sum(rows * rows)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [rows, loss] + list(table), {}, [train]


@same(steps=2)
def resource_variables(tasks):
    if tf.__version__.startswith(("0.", "1.0")):
        raise Skip("variables that are resources")
    with tf.device(tasks.ps):
        v = tf.get_variable("v", [3], initializer=tf.constant_initializer(1.0), use_resource=True)
    with tf.device(tasks.w1):
        loss = tf.reduce_sum(v * [1.0, 2.0, 3.0])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [loss, v.read_value()], {}, [train]


@graph
def counting_to_a_limit(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(0, name="count")
        up = v.count_up_to(2)
    with tasks.session() as s:
        s.run(v.initializer)
        assert [s.run(up), s.run(up)] == [0, 1]
        fails(tf.errors.OutOfRangeError, lambda: s.run(up), "Reached limit of 2")


@graph
def variable_without_a_value(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(1.0, name="unset")
    with tasks.session() as s:
        fails(tf.errors.FailedPreconditionError, lambda: s.run(v), "uninitialized value unset")
        assert list(s.run(tf.report_uninitialized_variables())) == [b"unset"]
        assert not s.run(tf.is_variable_initialized(v))


@graph
def two_masters_share_a_variable(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(0, name="shared")
        add = v.assign_add(1)
    with tasks.session() as one, tasks.session(tasks.other) as two:
        one.run(v.initializer)
        for _ in range(3):
            one.run(add)
            two.run(add)
        assert one.run(v) == 6 == two.run(v)


@graph
def graphs_share_by_name(tasks):
    def build():
        with tf.device(tasks.ps):
            return tf.Variable([1.0, 2.0], name="common")

    v = build()
    with tasks.session() as s:
        s.run(v.assign([3.0, 4.0]))
    for box, kept in (("graphs.share.by.name", True), ("another.box", False)):
        with tf.Graph().as_default() as g, g.container(box):
            v = build()
            with tasks.session() as s:
                if kept:
                    equal(s.run(v), [3.0, 4.0])
                else:
                    fails(tf.errors.FailedPreconditionError, lambda: s.run(v), "common")


@graph
def reset_empties_a_container(tasks):
    reset = need("Session.reset")
    with tf.Graph().as_default() as g, g.container("to.be.emptied"):
        with tf.device(tasks.ps):
            v = tf.Variable(5, name="gone")
        with tasks.session() as s:
            s.run(v.initializer)
            assert s.run(v) == 5
        reset(tasks.target, ["to.be.emptied"])
        with tasks.session() as s:
            fails(tf.errors.FailedPreconditionError, lambda: s.run(v), "gone")


@graph
def gradients_meet_in_an_accumulator(tasks):
    with tf.device(tasks.ps):
        sums = tf.ConditionalAccumulator(tf.float32, [2], shared_name="sums")
        average = sums.take_grad(2)
        steps = sums.set_global_step(4)
    with tf.device(tasks.w0):
        first = sums.apply_grad(tf.constant([1.0, 3.0]), 4)
    with tf.device(tasks.w1):
        second = sums.apply_grad(tf.constant([3.0, 1.0]), 4)
        late = sums.apply_grad(tf.constant([9.0, 9.0]), 1)
    with tasks.session() as s, tasks.session(tasks.other) as t:
        s.run(steps)
        s.run(late)
        s.run(first)
        t.run(second)
        equal(t.run(average), [2.0, 2.0])
        assert s.run(sums.num_accumulated()) == 0


@graph
def sparse_gradients_meet(tasks):
    with tf.device(tasks.ps):
        sums = tf.SparseConditionalAccumulator(tf.float32, shape=[4, 1], shared_name="rows")
        average = sums.take_indexed_slices_grad(2)
    with tf.device(tasks.w1):
        one = sums.apply_indexed_slices_grad(
            tf.IndexedSlices(tf.constant([[2.0], [4.0]]), tf.constant([0, 3], tf.int64)), 0
        )
    with tasks.session() as s:
        s.run(one)
        s.run(one)
        indices, rows = s.run([average.indices, average.values])
        equal(indices, [0, 3])
        equal(rows, [[2.0], [4.0]])


@graph
def temporary_variables(tasks):
    from tensorflow.python.ops import gen_state_ops

    make = getattr(gen_state_ops, "_temporary_variable", None) or getattr(
        gen_state_ops, "temporary_variable", None
    )
    end = getattr(gen_state_ops, "_destroy_temporary_variable", None) or getattr(
        gen_state_ops, "destroy_temporary_variable", None
    )
    if make is None:
        raise Skip("temporary variables")
    with tf.device(tasks.ps):
        v = make([2], tf.float32, var_name="brief")
        with tf.device(tasks.w1):
            four = tf.constant([4.0, 5.0])
        sum_ = end(tf.assign(v, four), "brief")
    with tasks.session() as s:
        equal(s.run(sum_ * 2), [8.0, 10.0])
