"""The models of the training rows, written as in tutorials.

Each function returns the loss, the optimizer, and a function from a step number to its feeds.
"""

BATCH = 100
VOCABULARY, EMBEDDING, SAMPLED, PAIRS = 50_000, 128, 64, 128


def perceptron(tf, np, rng, hidden, tasks):
    """A 784-hidden-10 network with a ReLU."""
    images = rng.rand(20, BATCH, 784).astype(np.float32)
    labels = np.eye(10, dtype=np.float32)[rng.randint(0, 10, (20, BATCH))]
    x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.float32, [None, 10])
    w1 = tf.get_variable(
        "w1", [784, hidden], initializer=tf.truncated_normal_initializer(stddev=1 / 28)
    )
    b1 = tf.get_variable("b1", [hidden], initializer=tf.zeros_initializer())
    w2 = tf.get_variable(
        "w2", [hidden, 10], initializer=tf.truncated_normal_initializer(stddev=hidden**-0.5)
    )
    b2 = tf.get_variable("b2", [10], initializer=tf.zeros_initializer())
    logits = tf.nn.xw_plus_b(tf.nn.relu(tf.nn.xw_plus_b(x, w1, b1)), w2, b2)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    return loss, tf.train.AdamOptimizer(0.01), lambda i: {x: images[i % 20], y: labels[i % 20]}


def word2vec(tf, np, rng, _, tasks):
    """Skip-gram with noise-contrastive loss, partitioned over the parameter servers."""
    words = np.minimum(rng.zipf(1.2, (20, PAIRS)), VOCABULARY) - 1
    near = (np.minimum(rng.zipf(1.2, (20, PAIRS, 1)), VOCABULARY) - 1).astype(np.int64)
    x, y = tf.placeholder(tf.int64, [PAIRS]), tf.placeholder(tf.int64, [PAIRS, 1])

    def parts(name, shape, initializer):
        of = [shape[0] // tasks + (i < shape[0] % tasks) for i in range(tasks)]
        return [
            tf.get_variable(f"{name}_{i}", [n, *shape[1:]], initializer=initializer)
            for i, n in enumerate(of)
        ]

    table = parts("table", [VOCABULARY, EMBEDDING], tf.random_uniform_initializer(-1, 1))
    weights = parts(
        "weights", [VOCABULARY, EMBEDDING], tf.truncated_normal_initializer(stddev=EMBEDDING**-0.5)
    )
    biases = parts("biases", [VOCABULARY], tf.zeros_initializer())
    vectors = tf.nn.embedding_lookup(table, x)
    loss = tf.reduce_mean(
        tf.nn.nce_loss(weights, biases, y, vectors, SAMPLED, VOCABULARY, partition_strategy="mod")
    )
    return (
        loss,
        tf.train.GradientDescentOptimizer(1.0),
        lambda i: {x: words[i % 20], y: near[i % 20]},
    )


MODELS = {"perceptron": perceptron, "word2vec": word2vec}
