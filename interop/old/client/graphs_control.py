"""Graphs with control flow: loops and conditions over tasks, their gradients, functions."""

import tensorflow as tf
from check import cell, graph, join, need, same, values


@same()
def loop_on_one_task(tasks):
    n = tf.placeholder(tf.int32, [])
    with tf.device(tasks.w1):
        out = tf.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), [0, 0])
    return list(out), {n: 6}, None


@same()
def loop_over_two_tasks(tasks):
    n = tf.placeholder(tf.int32, [])

    def body(i, x):
        with tf.device(tasks.ps):
            x = x * 2.0
        with tf.device(tasks.w0):
            return i + 1, x + 1.0

    with tf.device(tasks.w0):
        out = tf.while_loop(lambda i, x: i < n, body, [tf.constant(0), tf.constant([1.0, 2.0])])
    return list(out), {n: 5}, None


@same()
def loop_over_three_tasks(tasks):
    n = tf.placeholder(tf.int32, [])

    def body(i, x):
        with tf.device(tasks.ps):
            y = x + 1
        with tf.device(tasks.w1):
            return i + 1, y * 2

    with tf.device(tasks.w0):
        out = tf.while_loop(lambda i, x: i < n, body, [tf.constant(0), tf.constant(1)])
    return list(out), {n: 8}, None


@same()
def loops_in_a_loop_over_tasks(tasks):
    n = tf.placeholder(tf.int32, [])

    def row(i, total):
        def column(j, t):
            with tf.device(tasks.ps):
                t = t + i * j
            return j + 1, t

        with tf.device(tasks.w1):
            _, t = tf.while_loop(lambda j, t: j < 3, column, [tf.constant(0), total])
        return i + 1, t

    with tf.device(tasks.w0):
        out = tf.while_loop(lambda i, t: i < n, row, [tf.constant(0), tf.constant(0)])
    return list(out), {n: 4}, None


@same()
def three_loops_deep(tasks):
    places = [tasks.w0, tasks.ps, tasks.w1]

    def loop(depth, value):
        def body(i, v):
            with tf.device(places[depth % 3]):
                v = v + 1
            if depth < 2:
                v = loop(depth + 1, v)
            return i + 1, v

        with tf.device(places[(depth + 1) % 3]):
            return tf.while_loop(lambda i, v: i < 2, body, [tf.constant(0), value])[1]

    start = tf.placeholder(tf.int32, [])
    return [loop(0, start)], {start: 5}, None


@same()
def two_loops_side_by_side(tasks):
    x = tf.placeholder(tf.float32, [])
    results = []
    for here, there, factor in ((tasks.w0, tasks.ps, 2.0), (tasks.w1, tasks.ps, 3.0)):

        def body(i, v, there=there, factor=factor):
            with tf.device(there):
                return i + 1, v * factor

        with tf.device(here):
            results.append(
                tf.while_loop(lambda i, v: i < 4, body, [tf.constant(0), tf.identity(x)])[1]
            )
    return results + [results[0] + results[1]], {x: 1.5}, None


@same()
def one_iteration_at_a_time(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(1.0)

    def body(i):
        with tf.device(tasks.ps):
            with tf.control_dependencies([v.assign_add(tf.cast(i, tf.float32))]):
                return i + 1

    with tf.device(tasks.w1):
        end = tf.while_loop(lambda i: i < 5, body, [tf.constant(0)], parallel_iterations=1)
    with tf.control_dependencies([end]):
        return [v.read_value() if hasattr(v, "read_value") else v + 0], {}, None


@same()
def gradient_through_a_loop(tasks):
    w = tf.placeholder(tf.float32, [2, 2])

    def body(i, x):
        with tf.device(tasks.ps):
            return i + 1, tf.tanh(tf.matmul(x, w))

    with tf.device(tasks.w0):
        x = tf.constant(values(30, 3, 2))
        end = tf.while_loop(lambda i, x: i < 4, body, [tf.constant(0), x])[1]
        loss = tf.reduce_sum(end * end)
    return [loss] + tf.gradients(loss, [w, x]), {w: values(31, 2, 2)}, None


@same()
def gradient_through_nested_loops(tasks):
    w = tf.placeholder(tf.float32, [])

    def outer(i, x):
        def inner(j, y):
            with tf.device(tasks.w1):
                return j + 1, y * w + 0.1

        with tf.device(tasks.ps):
            return i + 1, tf.while_loop(lambda j, y: j < 2, inner, [tf.constant(0), x])[1]

    with tf.device(tasks.w0):
        end = tf.while_loop(lambda i, x: i < 3, outer, [tf.constant(0), tf.constant(1.0)])[1]
    return [end] + tf.gradients(end, w), {w: 0.8}, None


@same(steps=2)
def recurrent_network(tasks):
    x = tf.placeholder(tf.float32, [2, 5, 3])
    chooser = tf.train.replica_device_setter(1, worker_device=tasks.w1) if tasks.ps else None
    with tf.device(chooser):
        with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.2)):
            outputs, state = tf.nn.dynamic_rnn(cell(4), x, [5, 3], dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(outputs - 0.5)) + tf.reduce_sum(state[0]) * 0.1
        train = tf.train.GradientDescentOptimizer(0.3).minimize(loss)
    return [loss, outputs], {x: values(32, 2, 5, 3)}, [train]


@same()
def unrolled_network(tasks):
    x = tf.placeholder(tf.float32, [3, 2, 4])
    unroll = (
        need("nn.rnn")
        if hasattr(tf.nn, "rnn")
        else (tf.nn.static_rnn if hasattr(tf.nn, "static_rnn") else tf.contrib.rnn.static_rnn)
    )
    chooser = tf.train.replica_device_setter(1, worker_device=tasks.w0) if tasks.ps else None
    with tf.device(chooser):
        with tf.variable_scope("unrolled", initializer=tf.constant_initializer(0.1)):
            steps = [x[i] for i in range(3)]
            outputs, _ = unroll(cell(2), steps, dtype=tf.float32)
    return outputs + tf.gradients(outputs[-1], [x]), {x: values(33, 3, 2, 4)}, None


@same()
def arrays_of_tensors(tasks):
    x = tf.placeholder(tf.float32, [4, 2])
    with tf.device(tasks.ps):
        rows = tf.TensorArray(tf.float32, 4, clear_after_read=False)
        rows = rows.unstack(x) if hasattr(rows, "unstack") else rows.unpack(x)
        total = rows.read(0) + rows.read(3)
        back = rows.stack() if hasattr(rows, "stack") else rows.pack()
    with tf.device(tasks.w1):
        doubled = back * 2.0
    return [total, doubled] + tf.gradients(total, [x]), {x: values(34, 4, 2)}, None


@same()
def folds_and_scans(tasks):
    x = tf.placeholder(tf.float32, [5])
    with tf.device(tasks.ps):
        squares = tf.map_fn(lambda v: v * v, x)
        sums = tf.scan(lambda a, v: a + v, squares)
    with tf.device(tasks.w1):
        product = tf.foldl(lambda a, v: a * v, sums + 1.0)
    return [squares, sums, product] + tf.gradients(product, [x]), {x: values(35, 5)}, None


@same()
def conditions_both_ways(tasks):
    fetches = []
    p = tf.placeholder(tf.bool, [2])
    x = tf.placeholder(tf.float32, [3])
    for i in range(2):

        def yes():
            with tf.device(tasks.ps):
                return x * 2.0

        def no():
            with tf.device(tasks.w1):
                return x - 1.0

        with tf.device(tasks.w0):
            y = tf.cond(p[i], yes, no)
        fetches += [y] + tf.gradients(y, [x])
    return fetches, {p: [True, False], x: [1.0, 2.0, 3.0]}, None


@same()
def conditions_in_conditions(tasks):
    n = tf.placeholder(tf.int32, [])
    with tf.device(tasks.ps):
        ten = tf.constant(10)

    def small():
        with tf.device(tasks.w1):
            return tf.cond(n < 3, lambda: n + 1, lambda: n * ten)

    with tf.device(tasks.w0):
        y = tf.cond(n < 7, small, lambda: ten - n)
    return [y, y + 1], {n: 5}, None


@same()
def condition_in_a_loop(tasks):
    n = tf.placeholder(tf.int32, [])

    def even(x):
        with tf.device(tasks.ps):
            return x // 2

    def odd(x):
        with tf.device(tasks.w1):
            return 3 * x + 1

    def body(x, steps):
        with tf.device(tasks.w0):
            return tf.cond(tf.equal(x % 2, 0), lambda: even(x), lambda: odd(x)), steps + 1

    with tf.device(tasks.w0):
        out = tf.while_loop(lambda x, steps: x > 1, body, [n, tf.constant(0)])
    return list(out), {n: 7}, None


@same()
def the_first_case_that_holds(tasks):
    n = tf.placeholder(tf.int32, [])
    with tf.device(tasks.w1):
        y = tf.case(
            [(n > 9, lambda: tf.constant(9.0)), (n > 4, lambda: tf.constant(4.0))],
            default=lambda: tf.constant(0.0),
        )
    return [y], {n: 6}, None


@graph
def one_after_the_other(tasks):
    with tf.device(tasks.ps):
        v = tf.Variable(1, name="v")
        first = v.assign(v + 4)
    with tf.device(tasks.w1):
        with tf.control_dependencies([first]):
            seven = tf.constant(7)
    with tf.device(tasks.ps):
        with tf.control_dependencies([seven]):
            second = v.assign_add(v + 1)
        both = tf.group(second, first)
        pair = tf.tuple([tf.identity(seven), tf.constant(2)], control_inputs=[both])
    with tasks.session() as s:
        s.run(v.initializer)
        assert s.run(pair) == [7, 2]
        assert s.run(v) == 11


@same()
def functions_of_a_graph(tasks):
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32)
    def hypotenuse(a, b):
        return tf.sqrt(a * a + b * b)

    x = tf.placeholder(tf.float32, [2])
    with tf.device(tasks.ps):
        y = hypotenuse(x, x + 1.0)
    with tf.device(tasks.w1):
        z = hypotenuse(y, y)
    return [y, z] + tf.gradients(z, [x]), {x: [3.0, 8.0]}, None


@same()
def assertion_in_a_condition(tasks):
    x = tf.placeholder(tf.float32, [3])
    with tf.device(tasks.w1):
        checked = tf.Assert(tf.reduce_all(x > 0.0), [x], name="positive")
        with tf.control_dependencies([checked]):
            y = tf.log(x)
    return [y, join([y, y], 0)], {x: [1.0, 2.0, 3.0]}, None
