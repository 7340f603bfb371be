"""Graphs of computations: pinned devices, types, text, sparse tensors, images, gradients."""

import numpy as np
import tensorflow as tf
from check import Skip, graph, join, need, same, values


@graph
def sum_of_pinned_constants(tasks):
    with tf.device(tasks.ps + "/cpu:0"):
        a = tf.constant(20, name="a")
    with tf.device(tasks.w1 + "/cpu:0"):
        b = tf.constant(22, name="b")
    with tasks.session() as s:
        assert s.run(a + b) == 42


@same()
def every_type_between_tasks(tasks):
    fetches, feed = [], {}
    for t in "float32 float64 int8 int16 int32 int64 uint8 bool complex64 uint16".split():
        value = np.array([[0, 1, 1], [1, 0, 1]]).astype(t)
        with tf.device(tasks.ps):
            x = tf.placeholder(t, [2, 3])
            y = tf.identity(x)
        with tf.device(tasks.w1):
            fetches.append(tf.transpose(y))
        feed[x] = value
    return fetches, feed, None


@same()
def halves_between_tasks(tasks):
    with tf.device(tasks.ps):
        x = tf.placeholder(tf.float32, [4])
        half = tf.cast(x, tf.float16)
        brain = tf.cast(x, tf.bfloat16)
    with tf.device(tasks.w1):
        fetches = [tf.cast(half * half, tf.float32), tf.cast(brain, tf.float32)]
    return fetches, {x: [0.5, 1.5, -3.0, 1024.0]}, None


@same()
def text(tasks):
    x = tf.placeholder(tf.string, [3])
    with tf.device(tasks.ps):
        words = tf.string_split(x, " ")
        joined = tf.string_join([x, tf.constant(["!", "?", "."])], "--")
    with tf.device(tasks.w1):
        length = tf.size(words.values)
        row = tf.reduce_join(joined, 0, separator="/")
        bucket = tf.string_to_hash_bucket_fast(words.values, 1000)
        number = tf.string_to_number(tf.as_string([1.5, -2.0]))
    return (
        [words.indices, words.values, length, joined, row, bucket, number],
        {x: [b"a bc def", b"", b"\xff \x00"]},
        None,
    )


@same()
def sparse_products(tasks):
    x = tf.sparse_placeholder(tf.float32)
    dense = tf.constant(values(1, 4, 3))
    with tf.device(tasks.ps):
        product = tf.sparse_tensor_dense_matmul(x, dense)
        ordered = tf.sparse_reorder(x)
    with tf.device(tasks.w1):
        back = tf.sparse_tensor_to_dense(ordered, 7.0)
        total = tf.sparse_reduce_sum(ordered, 1)
    entries = (np.array([[2, 3], [0, 0], [1, 2]]), np.array([3.0, 1.0, 2.0]), np.array([3, 4]))
    return [product, back, total, ordered.indices], {x: entries}, None


@same(steps=3)
def rows_of_an_embedding(tasks):
    with tf.device(tasks.ps):
        table = tf.Variable(values(2, 20, 4))
    with tf.device(tasks.w1):
        rows = tf.placeholder(tf.int32, [None])
        found = tf.nn.embedding_lookup(table, rows)
        loss = tf.reduce_sum(found * found)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    return [loss, table], {rows: [3, 3, 19, 0]}, [train]


@same()
def bags_of_words(tasks):
    with tf.device(tasks.ps):
        table = tf.Variable(values(3, 10, 2))
    with tf.device(tasks.w1):
        ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 9, 4], tf.int64), [2, 2])
        means = tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean")
    return [means] + tf.gradients(means, [table.value()]), {}, None


@same(steps=2)
def convolutions(tasks):
    image = tf.placeholder(tf.float32, [2, 8, 8, 3])
    with tf.device(tasks.ps):
        kernel = tf.Variable(values(4, 3, 3, 3, 4))
        bias = tf.Variable(values(5, 4))
    with tf.device(tasks.w1):
        h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME"), bias))
        h = tf.nn.max_pool(h, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        h = tf.nn.lrn(h, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
        loss = tf.reduce_mean(tf.reduce_sum(h * h, [1, 2, 3]))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    return [loss, kernel, bias], {image: values(6, 2, 8, 8, 3)}, [train]


@same()
def pictures(tasks):
    with tf.device(tasks.w1):
        square = tf.constant((np.arange(48) * 5).reshape(4, 4, 3).astype(np.uint8))
        png = tf.image.encode_png(square)
    with tf.device(tasks.ps):
        back = tf.image.decode_png(png, 3)
        flipped = tf.image.flip_left_right(back)
        grown = tf.image.resize_images(tf.cast(flipped, tf.float32), [6, 6])
        whitened = tf.image.per_image_standardization(grown)
    return [back, flipped, grown, whitened], {}, None


@graph
def eight_megabytes_there_and_back(tasks):
    x = tf.placeholder(tf.float32, [None, 1024])
    with tf.device(tasks.ps):
        y = x + 1.0
    with tf.device(tasks.w1):
        z = join([y, y], 0)
    with tf.device(tasks.ps):
        total = tf.reduce_sum(z, 1)
    with tasks.session() as s:
        got = s.run(total, {x: np.zeros((2048, 1024), np.float32)})
        assert got.shape == (4096,) and (got == 1024).all(), got


@same()
def derivatives_of_derivatives(tasks):
    x = tf.placeholder(tf.float32, [3])
    with tf.device(tasks.ps):
        y = tf.exp(x) * tf.sin(x)
    with tf.device(tasks.w1):
        first = tf.gradients(y, x)[0]
    second = tf.gradients(first, x)[0]
    return [y, first, second], {x: [0.1, -0.5, 2.0]}, None


@same()
def numbers_of_a_seed(tasks):
    with tf.device(tasks.ps):
        a = tf.random_uniform([5], seed=7)
        b = tf.random_normal([5], seed=8)
    with tf.device(tasks.w1):
        c = tf.truncated_normal([5], seed=9)
        d = tf.random_uniform([5], maxval=100, dtype=tf.int32, seed=10)
        e = tf.random_shuffle(tf.range(10), seed=11)
    return [a, b, c, d, e], {}, None


@same()
def sampled_losses(tasks):
    with tf.device(tasks.ps):
        weights = tf.Variable(values(7, 30, 6))
        biases = tf.Variable(tf.zeros([30]))
    with tf.device(tasks.w1):
        inputs = tf.constant(values(8, 4, 6))
        labels = tf.constant([[1], [3], [20], [29]], tf.int64)
        sampled = tf.nn.log_uniform_candidate_sampler(labels, 1, 5, True, 30, seed=4)
        loss = tf.reduce_mean(
            tf.nn.nce_loss(
                weights=weights,
                biases=biases,
                inputs=inputs,
                labels=labels,
                num_sampled=5,
                num_classes=30,
                sampled_values=sampled,
            )
        )
    slope = tf.gradients(loss, [biases.value()])
    return [loss] + slope, {}, None


@same()
def sequence_losses(tasks):
    with tf.device(tasks.ps):
        logits = tf.constant(values(9, 6, 2, 5))
    with tf.device(tasks.w1):
        labels = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], [1, 2, 0], [2, 2])
        loss = tf.nn.ctc_loss(labels=labels, inputs=logits, sequence_length=[6, 5])
        decoded, _ = tf.nn.ctc_greedy_decoder(logits, [6, 5])
    return [loss, decoded[0].values], {}, None


@same()
def linear_algebra(tasks):
    x = tf.placeholder(tf.float64, [3, 3])
    with tf.device(tasks.ps):
        square = tf.matmul(x, x, transpose_b=True) + tf.cast(tf.diag([1.0, 1.0, 1.0]), tf.float64)
        root = tf.cholesky(square)
    with tf.device(tasks.w1):
        inverse = tf.matrix_inverse(square)
        solved = tf.matrix_solve(square, x)
        size = tf.matrix_determinant(square)
    return [root, inverse, solved, size], {x: values(10, 3, 3)}, None


@same(steps=3)
def layers_of_contrib(tasks):
    layers = need("contrib.layers")
    x = tf.placeholder(tf.float32, [None, 6])
    chooser = tf.train.replica_device_setter(1, worker_device=tasks.w1) if tasks.ps else None
    with tf.device(chooser):
        start = tf.constant_initializer(0.1)
        h = layers.fully_connected(
            x,
            4,
            normalizer_fn=layers.batch_norm,
            normalizer_params={"is_training": True, "updates_collections": None},
            weights_initializer=start,
            weights_regularizer=layers.l2_regularizer(0.01),
        )
        y = layers.fully_connected(h, 1, activation_fn=None, weights_initializer=start)
        loss = tf.reduce_mean(tf.square(y - 1.0))
        loss += tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))
        step = (
            tf.contrib.framework.get_or_create_global_step()
            if hasattr(tf.contrib.framework, "get_or_create_global_step")
            else None
        )
        train = layers.optimize_loss(loss, step, 0.1, "Adam", clip_gradients=1.0, summaries=[])
    return [loss], {x: values(11, 5, 6)}, [train]


@same()
def metrics_over_batches(tasks):
    streaming = need("contrib.metrics.streaming_accuracy")
    if not hasattr(tf, "local_variables_initializer"):
        raise Skip("tf.local_variables_initializer")
    with tf.device(tasks.w1):
        right = tf.constant([1, 2, 3, 4])
        guess = tf.placeholder(tf.int32, [4])
        value, update = streaming(guess, right)
    return [value], {guess: [1, 2, 0, 4]}, [update]
