"""Writes the models of bench.endtoend.serving, and a request for each.

  python -m bench.servingmodels DIR

DIR/NAME/1 is a SavedModel and DIR/NAME.request a serialized PredictRequest with one example.
"""

import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

WORDS = 5000


def models(tf, np):
    """Returns {name: (module, signature, input)}."""
    random = np.random.RandomState(0)

    def weights(*shape):
        return tf.Variable((random.randn(*shape) / np.sqrt(shape[-2])).astype(np.float32))

    m = tf.Module()
    m.w = [weights(784, 128), weights(128, 10)]

    @tf.function(input_signature=[tf.TensorSpec([None, 784], tf.float32, "x")])
    def mlp(x):
        return {"y": tf.nn.softmax(tf.nn.relu(x @ m.w[0]) @ m.w[1])}

    c = tf.Module()
    c.w = [weights(3, 3, 1, 32), weights(3, 3, 32, 64), weights(7 * 7 * 64, 10)]

    @tf.function(input_signature=[tf.TensorSpec([None, 28, 28, 1], tf.float32, "x")])
    def cnn(x):
        for w in c.w[:2]:
            x = tf.nn.max_pool2d(tf.nn.relu(tf.nn.conv2d(x, w, 1, "SAME")), 2, 2, "SAME")
        return {"y": tf.nn.softmax(tf.reshape(x, [-1, 7 * 7 * 64]) @ c.w[2])}

    t = tf.Module()
    words = tf.lookup.KeyValueTensorInitializer(
        [f"word{i}" for i in range(WORDS)], tf.range(WORDS, dtype=tf.int64)
    )
    t.table = tf.lookup.StaticHashTable(words, WORDS)
    t.w = [weights(WORDS + 1, 64), weights(64, 64), weights(64, 2)]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "x")])
    def text(x):
        ids = t.table.lookup(tf.strings.split(tf.strings.lower(x))).to_tensor(WORDS)
        mean = tf.reduce_mean(tf.gather(t.w[0], ids), 1)
        return {"y": tf.nn.softmax(tf.nn.relu(mean @ t.w[1]) @ t.w[2])}

    sentence = " ".join(f"Word{i}" for i in random.randint(0, WORDS, 40))
    return {
        "mlp": (m, mlp, random.rand(1, 784).astype(np.float32)),
        "cnn": (c, cnn, random.rand(1, 28, 28, 1).astype(np.float32)),
        "text": (t, text, np.array([sentence.encode()])),
    }


def main(folder):
    import numpy as np
    import tensorflow as tf

    from bench import servingproto

    folder = pathlib.Path(folder)
    for name, (module, signature, x) in models(tf, np).items():
        tf.saved_model.save(module, str(folder / name / "1"), {"serving_default": signature})
        request = servingproto.PredictRequest()
        request.model_spec.name = name
        request.inputs["x"].CopyFrom(tf.make_tensor_proto(x))
        (folder / f"{name}.request").write_bytes(request.SerializeToString())


if __name__ == "__main__":
    main(sys.argv[1])
