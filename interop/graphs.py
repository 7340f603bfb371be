"""Graphs whose results on a cluster must equal those of a TensorFlow session in this process.

Each function builds one graph and returns (fetches, feed). Feeds prevent constant folding.
"""

import numpy as np
import tensorflow.compat.v1 as tf

GRAPHS = []


def graph(build):
    GRAPHS.append(build)
    return build


def values(*shape, seed=1):
    return np.random.RandomState(seed).uniform(-2, 2, shape).astype(np.float32)


def feed(array):
    placeholder = tf.placeholder(array.dtype, array.shape)
    return placeholder, {placeholder: array}


@graph
def arithmetic():
    x, f = feed(values(4, 5))
    y = tf.constant(values(5, seed=2))
    return [
        x + y,
        x - y,
        x * y,
        x / y,
        tf.maximum(x, y),
        -x,
        tf.abs(x),
        tf.square(x),
        tf.exp(x),
        tf.tanh(x),
        tf.sigmoid(x),
    ], f


@graph
def integers():
    x, f = feed(np.array([7, -7, 0, 2**31 - 1], np.int32))
    long = tf.cast(x, tf.int64)
    return [
        x + 1,
        x * 3,
        x // 2,
        tf.floormod(x, 3),
        long * long,
        tf.cast(x, tf.float64),
        tf.less(x, 3),
        tf.equal(x, 0),
    ], f


@graph
def matrix_products():
    x, f = feed(values(3, 4))
    y = tf.constant(values(4, 2, seed=2))
    return [
        tf.matmul(x, y),
        tf.matmul(x, x, transpose_b=True),
        tf.matmul(x, x, transpose_a=True),
        tf.nn.bias_add(tf.matmul(x, y), [1.0, 2.0]),
    ], f


@graph
def reductions():
    x, f = feed(values(2, 3, 4))
    return [
        tf.reduce_sum(x),
        tf.reduce_mean(x, axis=1),
        tf.reduce_max(x, axis=[0, 2]),
        tf.reduce_min(x, axis=-1, keepdims=True),
        tf.reduce_prod(x, axis=0),
        tf.argmax(x, 1),
        tf.reduce_all(x > -3),
        tf.reduce_any(x > 3),
    ], f


@graph
def shapes():
    x, f = feed(values(2, 3, 4))
    return [
        tf.reshape(x, [-1, 4]),
        tf.transpose(x, [2, 0, 1]),
        tf.concat([x, x], 1),
        x[:, 1:, ::2],
        tf.expand_dims(x, 0),
        tf.stack([x, x], 1),
        tf.unstack(x, axis=1)[2],
        tf.tile(x, [1, 2, 1]),
        tf.shape(x),
        tf.gather(x, [1, 0, 1]),
    ], f


@graph
def cross_entropies():
    x, f = feed(values(4, 10))
    labels = tf.constant([1, 0, 9, 3])
    return [
        tf.nn.softmax(x),
        tf.nn.softmax_cross_entropy_with_logits_v2(labels=tf.one_hot(labels, 10), logits=x),
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x),
        tf.nn.log_softmax(x),
    ], f


@graph
def convolution_and_pooling():
    x, f = feed(values(2, 12, 12, 3))
    filters = tf.constant(values(5, 5, 3, 4, seed=2))
    same = tf.nn.relu(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"))
    valid = tf.nn.conv2d(x, filters, [1, 2, 2, 1], "VALID")
    pool = tf.nn.max_pool(same, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    return [same, valid, pool] + tf.gradients(
        [tf.reduce_sum(pool * pool), tf.reduce_sum(valid)], [x, filters]
    ), f


@graph
def groups_that_masters_replace():
    # a master of TensorFlow with oneDNN replaces each result by one operation
    x, f = feed(values(2, 6, 6, 4))
    y, more = feed(values(1, 3, 5, 5, 2, seed=4))
    depthwise = tf.nn.depthwise_conv2d(x, values(3, 3, 4, 2, seed=2), [1, 1, 1, 1], "SAME")
    volume = tf.nn.conv3d(y, values(2, 2, 2, 2, 3, seed=5), [1, 1, 1, 1, 1], "SAME")
    padded = tf.pad(y, [[0, 0], [1, 1], [0, 1], [1, 0], [0, 0]])
    padded = tf.nn.conv3d(padded, values(2, 2, 2, 2, 3, seed=5), [1, 1, 1, 1, 1], "VALID")
    area = tf.nn.conv2d(x, values(3, 3, 4, 2, seed=6), [1, 1, 1, 1], "SAME")
    area = tf.nn.bias_add(area, values(2, seed=7))
    rows = x + 1.0
    layer = tf.nn.moments(rows, [3], keepdims=True)
    instance = tf.nn.moments(x, [1, 2], keepdims=True)
    scale, offset = values(4, seed=8), values(4, seed=9)
    f.update(more)
    results = [
        tf.nn.relu(tf.nn.bias_add(depthwise, values(8, seed=3))),
        tf.nn.elu(tf.nn.bias_add(volume, values(3, seed=3))),
        tf.nn.bias_add(padded, values(3, seed=3)),
        area * tf.tanh(tf.nn.softplus(area)),
        rows * tf.sigmoid(rows),
        tf.nn.batch_normalization(rows, layer[0], layer[1], offset, scale, 1e-3),
        tf.nn.relu(tf.nn.batch_normalization(x, instance[0], instance[1], offset, scale, 1e-3)),
    ]
    return [tf.identity(result) for result in results], f


@graph
def gradients_of_a_network():
    x, f = feed(values(8, 6))
    w1, w2 = tf.constant(values(6, 5, seed=2)), tf.constant(values(5, 3, seed=3))
    logits = tf.matmul(tf.nn.relu(tf.matmul(x, w1)), w2)
    loss = tf.reduce_mean(
        tf.nn.softmax_cross_entropy_with_logits_v2(
            labels=tf.one_hot([0, 1, 2, 0, 1, 2, 0, 1], 3), logits=logits
        )
    )
    return [loss] + tf.gradients(loss, [x, w1, w2]), f


@graph
def random_numbers_follow_the_seed():
    shape, f = feed(np.array([100, 3], np.int32))
    return [
        tf.random_uniform(shape, seed=1),
        tf.random_normal(shape, seed=2),
        tf.truncated_normal(shape, seed=3),
        tf.random_uniform(shape, maxval=10, dtype=tf.int32, seed=4),
    ], f


@graph
def text_and_truth():
    x = tf.placeholder(tf.string, [3])
    flag = tf.placeholder(tf.bool, [])
    return [tf.identity(x), tf.logical_not(flag), tf.logical_and(flag, True)], {
        x: [b"", b"weft", b"\x00\xff"],
        flag: False,
    }


@graph
def empty_and_scalar():
    x, f = feed(np.zeros((0, 3), np.float32))
    y, g = feed(np.float64(1.5))
    return [x * 2.0, tf.reduce_sum(x, 0), tf.concat([x, x], 0), y * y, tf.reshape(y, [1, 1])], {
        **f,
        **g,
    }


@graph
def recurrent_cells():
    x, f = feed(values(3, 2, 4))
    cs, h, w, peep, b = (
        tf.constant(values(*shape, seed=seed))
        for seed, shape in enumerate([(2, 3), (2, 3), (7, 12), (3,), (12,)])
    )
    block = tf.raw_ops.BlockLSTM(
        seq_len_max=2,
        x=x,
        cs_prev=cs,
        h_prev=h,
        w=w,
        wci=peep,
        wcf=peep,
        wco=peep,
        b=b,
        use_peephole=True,
    )
    cell = tf.raw_ops.LSTMBlockCell(
        x=x[0], cs_prev=cs, h_prev=h, w=w, wci=peep, wcf=peep, wco=peep, b=b
    )
    gru = tf.raw_ops.GRUBlockCell(
        x=x[0], h_prev=h, w_ru=w[:, :6], w_c=w[:, :3], b_ru=b[:6], b_c=b[:3]
    )
    return [block.cs, block.h] + list(cell) + list(gru) + tf.gradients(
        tf.reduce_sum(block.h * block.h), [x, w, b]
    ), f
