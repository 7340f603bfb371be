"""write1.py FOLDER: writes models with TensorFlow 1.4 to 1.15, and the answers of their sessions."""

from __future__ import print_function

import base64
import json
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

tf.logging.set_verbosity(tf.logging.ERROR)
FOLDER = sys.argv[1]
TAG = tf.saved_model.tag_constants.SERVING
PREDICT = tf.saved_model.signature_constants.PREDICT_METHOD_NAME
DEFAULT = tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def as_json(value, name):
    """Returns a value as TensorFlow Serving's JSON has it."""
    if isinstance(value, np.ndarray) and value.ndim:
        return [as_json(v, name) for v in value]
    value = value.item() if hasattr(value, "item") else value
    if isinstance(value, bytes):
        if name.endswith("_bytes"):
            return {"b64": base64.b64encode(value).decode()}
        return value.decode()
    return value


def column(values):
    named = {name: as_json(np.asarray(v), name) for name, v in values.items()}
    return named if len(named) > 1 else list(named.values())[0]


def write_case(name, case):
    if not os.path.isdir(FOLDER + "/cases"):
        os.makedirs(FOLDER + "/cases")
    with open("%s/cases/%s.json" % (FOLDER, name), "w") as f:
        json.dump([case], f)
    print(name)
    sys.stdout.flush()


def loaded(name, run):
    """Returns what run returns for a session with the saved model."""
    with tf.Session(graph=tf.Graph()) as sess:
        meta = tf.saved_model.loader.load(sess, [TAG], "%s/models/%s/1" % (FOLDER, name))
        return run(sess, meta.signature_def[DEFAULT])


def predict_model(make):
    """Saves the graph of make, which returns placeholders, results and values for a request."""
    name = make.__name__
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.set_random_seed(3)
        inputs, outputs, values = make()
        sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
        info = tf.saved_model.utils.build_tensor_info
        signature = tf.saved_model.signature_def_utils.build_signature_def(
            {k: info(v) for k, v in inputs.items()},
            {k: info(v) for k, v in outputs.items()},
            PREDICT,
        )
        builder = tf.saved_model.builder.SavedModelBuilder("%s/models/%s/1" % (FOLDER, name))
        builder.add_meta_graph_and_variables(
            sess,
            [TAG],
            {DEFAULT: signature},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            legacy_init_op=tf.tables_initializer(),
        )
        builder.save()

    def run(sess, signature):
        fetches = {k: v.name for k, v in signature.outputs.items()}
        return sess.run(fetches, {signature.inputs[k].name: v for k, v in values.items()})

    out = loaded(name, run)
    request = {"inputs": column(values)}
    write_case(name, {"call": "predict", "request": request, "want": {"outputs": column(out)}})


def words():
    """A table from a file, which is an asset, and bags of words."""
    vocabulary = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(vocabulary, "w") as f:
        f.write("good\nbad\nfilm\nthe\n")
    text = tf.placeholder(tf.string, [None])
    table = tf.contrib.lookup.index_table_from_file(vocabulary, num_oov_buckets=2)
    parts = tf.string_split(text)
    ids = tf.SparseTensor(parts.indices, table.lookup(parts.values), parts.dense_shape)
    embedding = tf.get_variable("embedding", [6, 8])
    bag = tf.nn.embedding_lookup_sparse(embedding, ids, None, combiner="mean")
    scores = tf.nn.softmax(tf.layers.dense(bag, 2))
    best = tf.gather(tf.constant(["negative", "positive"]), tf.argmax(scores, 1))
    values = np.array([b"the film good", b"bad bad unknown"], object)
    return {"text": text}, {"scores": scores, "label": best}, {"text": values}


def photo():
    """A JPEG file, convolutions, normalization with the averages of training."""
    encoded = tf.placeholder(tf.string, [])
    x = tf.image.convert_image_dtype(tf.image.decode_jpeg(encoded, 3), tf.float32)
    x = tf.image.resize_bilinear(x[None], [20, 20])
    for filters in (8, 16):
        x = tf.layers.conv2d(x, filters, 3, padding="same", use_bias=False)
        x = tf.nn.relu(tf.layers.batch_normalization(x, training=False))
        x = tf.layers.max_pooling2d(x, 2, 2)
    y = tf.layers.dense(tf.reduce_mean(x, [1, 2]), 4)
    picture = np.add.outer(np.arange(24)[:, None] * 5, np.arange(30) * 3)
    picture = np.repeat(picture.reshape(24, 30, 1), 3, 2).astype(np.uint8)
    with tf.Session() as sess:
        data = sess.run(tf.image.encode_jpeg(picture, quality=80))
    return {"image_bytes": encoded}, {"logits": y}, {"image_bytes": np.array(data, object)}


def translation():
    """An encoder, attention, and the best words: by beam search, or one by one in TensorFlow 1.4."""
    seq = tf.contrib.seq2seq
    width = 1 if tf.__version__.startswith("1.4") else 3  # GatherTree has changed since
    source, length = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None])
    embedding = tf.get_variable("embedding", [12, 6])
    encoder = tf.nn.rnn_cell.BasicLSTMCell(7)
    memory, state = tf.nn.dynamic_rnn(
        encoder, tf.nn.embedding_lookup(embedding, source), length, dtype=tf.float32
    )
    tiled = seq.tile_batch(memory, width)
    attention = seq.LuongAttention(7, tiled, seq.tile_batch(length, width))
    cell = seq.AttentionWrapper(tf.nn.rnn_cell.BasicLSTMCell(7), attention, 7)
    n = tf.shape(source)[0]
    first = cell.zero_state(n * width, tf.float32)
    first = first.clone(cell_state=seq.tile_batch(state, width))
    kernel, start = tf.random_normal_initializer(seed=4), tf.fill([n], 1)
    out = tf.layers.Dense(12, kernel_initializer=kernel)
    if width > 1:
        decoder = seq.BeamSearchDecoder(cell, embedding, start, 0, first, width, out)
    else:
        helper = seq.GreedyEmbeddingHelper(embedding, start, 0)
        decoder = seq.BasicDecoder(cell, helper, first, out)
    result, _, lengths = seq.dynamic_decode(decoder, maximum_iterations=6)
    found = result.predicted_ids if width > 1 else result.sample_id
    values = {"source": np.array([[3, 4, 5], [6, 7, 0]], "i"), "length": np.array([3, 2], "i")}
    return {"source": source, "length": length}, {"words": found, "lengths": lengths}, values


def sums():
    """Loops and conditions of the old kind."""
    n, x = tf.placeholder(tf.int32, []), tf.placeholder(tf.float32, [None])

    def body(i, total):
        bigger = tf.cond(i % 2 > 0, lambda: total * 2 + x, lambda: total - 1)
        return i + 1, bigger

    _, total = tf.while_loop(lambda i, _: i < n, body, [0, tf.zeros_like(x)])
    values = {"n": np.int32(7), "x": np.array([1, 2.5], "f")}
    return {"n": n, "x": x}, {"total": total, "largest": tf.reduce_max(total)}, values


def examples():
    """Returns tf.Example messages, their features and labels."""
    rng = np.random.RandomState(2)
    colors, ages = ["red", "green", "blue"], rng.randint(18, 80, 60)
    picked, income = rng.randint(0, 3, 60), rng.rand(60).astype("f")
    labels = ((ages > 40) & (picked > 0)).astype("i")
    rows = []
    for i in range(60):
        feature = {
            "age": tf.train.Feature(float_list=tf.train.FloatList(value=[ages[i]])),
            "income": tf.train.Feature(float_list=tf.train.FloatList(value=[income[i]])),
            "color": tf.train.Feature(
                bytes_list=tf.train.BytesList(value=[colors[picked[i]].encode()])
            ),
        }
        rows.append(tf.train.Example(features=tf.train.Features(feature=feature)))
    named = {
        "age": ages.astype("f")[:, None],
        "income": income[:, None],
        "color": np.array([colors[i] for i in picked])[:, None],
    }
    return rows, named, labels


def estimator(name, make, columns):
    """Trains an estimator, exports it, and asks for the classes of examples."""
    rows, features, labels = examples()
    model = make(tempfile.mkdtemp())

    def data():
        return tf.data.Dataset.from_tensor_slices((dict(features), labels)).repeat().batch(60)

    model.train(lambda: data().make_one_shot_iterator().get_next(), steps=20)
    spec = tf.feature_column.make_parse_example_spec(columns)
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    folder = "%s/models/%s" % (FOLDER, name)
    exported = model.export_savedmodel(folder, receiver)
    os.rename(exported, (folder + "/1").encode())
    asked = rows[:4]

    def run(sess, signature):
        fetches = [signature.outputs[k].name for k in ("classes", "scores")]
        feed = np.array([r.SerializeToString() for r in asked], object)
        return sess.run(fetches, {signature.inputs["inputs"].name: feed})

    classes, scores = loaded(name, run)
    results = [[[c.decode(), float(s)] for c, s in zip(*pair)] for pair in zip(classes, scores)]
    shown = []
    for row in asked:
        f = row.features.feature
        shown.append(
            {
                "age": f["age"].float_list.value[0],
                "income": f["income"].float_list.value[0],
                "color": f["color"].bytes_list.value[0].decode(),
            }
        )
    request = {"examples": shown}
    write_case(name, {"call": "classify", "request": request, "want": {"results": results}})


def estimators():
    column = tf.feature_column
    age, income = column.numeric_column("age"), column.numeric_column("income")
    buckets = column.bucketized_column(age, [25, 40, 60])
    color = column.categorical_column_with_vocabulary_list("color", ["red", "green", "blue"])
    hashed = column.categorical_column_with_hash_bucket("color", 10)
    crossed = column.crossed_column([buckets, "color"], 50)
    wide, deep = [buckets, color, crossed], [age, income, column.embedding_column(hashed, 4)]

    def wide_deep(folder):
        return tf.estimator.DNNLinearCombinedClassifier(
            folder,
            linear_feature_columns=wide,
            dnn_feature_columns=deep,
            dnn_hidden_units=[8, 4],
        )

    estimator("wide_deep", wide_deep, wide + deep)
    if hasattr(tf.estimator, "BoostedTreesClassifier"):
        columns = [
            buckets,
            column.bucketized_column(income, [0.3, 0.6]),
            column.indicator_column(color),
        ]

        def boosted(folder):
            return tf.estimator.BoostedTreesClassifier(
                columns, n_batches_per_layer=1, model_dir=folder, n_trees=5, max_depth=3
            )

        estimator("boosted", boosted, columns)


if __name__ == "__main__":
    for make in (words, photo, translation, sums):
        predict_model(make)
    estimators()
