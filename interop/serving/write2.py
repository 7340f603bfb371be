"""write2.py FOLDER: writes models with TensorFlow 2, and the answers that it computes itself."""

import base64
import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(sys.argv[1])
MODELS = {}
L = tf.keras.layers


def model(make):
    """Registers a function that returns a function to serve, the module that owns it, the
    specifications of its inputs, and inputs by name."""
    MODELS[make.__name__] = make
    return make


def as_json(value, name):
    """Returns a tensor as TensorFlow Serving's JSON has it."""
    value = np.asarray(value)

    def one(x):
        if isinstance(x, bytes):
            return {"b64": base64.b64encode(x).decode()} if name.endswith("_bytes") else x.decode()
        return x.item() if hasattr(x, "item") else x

    if value.ndim == 0:
        return one(value[()])
    return [as_json(v, name) if value.ndim > 1 else one(v) for v in value]


def column(values):
    """Returns the value of the key "inputs" or "outputs"."""
    named = {name: as_json(v, name) for name, v in values.items()}
    return named if len(named) > 1 else next(iter(named.values()))


def seeded(shape, seed):
    return np.random.RandomState(seed).standard_normal(shape).astype(np.float32)


def weights(shape, seed):
    return tf.Variable(seeded(shape, seed) / np.float32(np.sqrt(shape[0])))


def spec(shape, dtype, name):
    return tf.TensorSpec(shape, dtype, name)


@model
def transformer():
    """Text in, a table of words, attention, normalization."""
    words = ["the", "cat", "sat", "on", "mat", "a", "dog", "ran"]
    text = L.TextVectorization(output_sequence_length=6, vocabulary=words)
    i = tf.keras.Input((), dtype="string")
    tokens = text(i)
    x = L.Embedding(len(words) + 2, 16)(tokens) + L.Embedding(6, 16)(tf.range(6)[None])
    for _ in range(2):
        x = L.LayerNormalization()(x + L.MultiHeadAttention(2, 8)(x, x))
        x = L.LayerNormalization()(x + L.Dense(16)(L.Dense(32, activation="gelu")(x)))
    m = tf.keras.Model(i, L.Dense(3, activation="softmax")(L.GlobalAveragePooling1D()(x)))
    inputs = {
        "text": np.array(["The cat sat on the mat!", "", "a DOG ran, unknown words here too"])
    }
    return (lambda text: {"probabilities": m(text)}), m, [spec([None], tf.string, "text")], inputs


@model
def photos():
    """Encoded pictures of different sizes, a depthwise network."""

    class Photos(tf.Module):
        def __init__(self):
            self.depthwise, self.dense = weights([3, 3, 3, 4], 1), weights([12, 5], 2)

        def one(self, encoded):
            picture = tf.io.decode_image(encoded, 3, expand_animations=False)
            picture.set_shape([None, None, 3])
            return tf.image.resize(tf.image.convert_image_dtype(picture, tf.float32), [16, 16])

        def call(self, image_bytes):
            x = tf.map_fn(self.one, image_bytes, fn_output_signature=tf.float32)
            x = tf.nn.relu6(tf.nn.depthwise_conv2d(x, self.depthwise, [1, 2, 2, 1], "SAME"))
            scores = tf.reduce_mean(x, [1, 2]) @ self.dense
            return {"scores": scores, "best": tf.argmax(scores, -1)}

    m = Photos()
    pictures = [
        np.random.RandomState(i).randint(0, 255, (9 + i, 12, 3), np.uint8) for i in range(3)
    ]
    encode = [tf.io.encode_png, tf.io.encode_jpeg, tf.io.encode_png]
    encoded = [f(p).numpy() for f, p in zip(encode, pictures, strict=True)]
    inputs = {"image_bytes": np.array(encoded, object)}
    return m.call, m, [spec([None], tf.string, "image_bytes")], inputs


@model
def detector():
    """Boxes without those that overlap better ones."""
    m = tf.Module()

    def call(boxes, scores):
        out = tf.image.combined_non_max_suppression(boxes[:, :, None], scores, 3, 5, 0.4, 0.2)
        return out._asdict()

    low = np.random.RandomState(3).rand(2, 8, 2).astype("f") * 0.6
    inputs = {
        "boxes": np.concatenate([low, low + 0.3], -1),
        "scores": np.random.RandomState(4).rand(2, 8, 3).astype("f"),
    }
    specs = [spec([None, 8, 4], tf.float32, "boxes"), spec([None, 8, 3], tf.float32, "scores")]
    return call, m, specs, inputs


@model
def decoder():
    """Words one after the other from a recurrent cell, until all sentences have ended."""

    class Decoder(tf.Module):
        def __init__(self):
            self.cell, self.words = tf.keras.layers.GRUCell(12), weights([12, 20], 5)
            self.embedding = weights([20, 12], 6)
            self.cell.build((None, 12))
            self.values = [v.value for v in self.cell.variables]
            self.names = tf.constant([f"w{i}" for i in range(20)])

        def call(self, state):
            n = tf.shape(state)[0]
            word, out = tf.ones([n], tf.int32), tf.TensorArray(tf.int32, 0, dynamic_size=True)
            done, i = tf.zeros([n], tf.bool), tf.constant(0)
            while i < 7 and not tf.reduce_all(done):
                tf.autograph.experimental.set_loop_options(
                    shape_invariants=[(state, tf.TensorShape([None, 12]))]
                )
                y, (state,) = self.cell(tf.gather(self.embedding, word), [state])
                word = tf.where(done, 0, tf.argmax(y @ self.words, -1, tf.int32))
                done, out, i = done | (word == 0), out.write(i, word), i + 1
            ids = tf.transpose(out.stack())
            return {
                "ids": ids,
                "text": tf.strings.reduce_join(tf.gather(self.names, ids), -1, separator=" "),
            }

    m = Decoder()
    return m.call, m, [spec([None, 12], tf.float32, "state")], {"state": seeded([4, 12], 7)}


@model
def tables():
    """Two tables, one of them the inverse, and one that changed before it was saved."""

    class Tables(tf.Module):
        def __init__(self):
            keys = tf.constant(["red", "green", "blue"])
            init = tf.lookup.KeyValueTensorInitializer(keys, tf.constant([0, 1, 2], tf.int64))
            self.known = tf.lookup.StaticVocabularyTable(init, 4)
            back = tf.lookup.KeyValueTensorInitializer(tf.constant([0, 1, 2], tf.int64), keys)
            self.names = tf.lookup.StaticHashTable(back, "other")
            self.prices = tf.lookup.experimental.MutableHashTable(tf.string, tf.float32, -1.0)
            self.prices.insert(keys[:2], [1.5, 2.5])

        def call(self, color):
            i = self.known.lookup(color)
            return {"id": i, "name": self.names.lookup(i), "price": self.prices.lookup(color)}

    m = Tables()
    inputs = {"color": np.array([["red", "pink"], ["blue", "green"]])}
    return m.call, m, [spec([None, None], tf.string, "color")], inputs


@model
def examples():
    """tf.Example with sparse, fixed and missing features."""

    class Examples(tf.Module):
        def __init__(self):
            self.table = weights([50, 4], 8)

        def call(self, examples_bytes):
            parsed = tf.io.parse_example(
                examples_bytes,
                {
                    "tags": tf.io.VarLenFeature(tf.string),
                    "weight": tf.io.VarLenFeature(tf.float32),
                    "age": tf.io.FixedLenFeature([], tf.int64, -1),
                    "parts": tf.io.RaggedFeature(tf.int64),
                },
            )
            tags = parsed["tags"]
            hashed = tf.strings.to_hash_bucket_fast(tags.values, 50)
            ids = tf.SparseTensor(tags.indices, hashed, tags.dense_shape)
            x = tf.nn.safe_embedding_lookup_sparse(self.table, ids, parsed["weight"], "sqrtn")
            return {"x": x, "age": parsed["age"], "parts": tf.reduce_sum(parsed["parts"], -1)}

    def example(tags, weight, parts, **age):
        feature = {
            "tags": tf.train.Feature(bytes_list=tf.train.BytesList(value=tags)),
            "weight": tf.train.Feature(float_list=tf.train.FloatList(value=weight)),
            "parts": tf.train.Feature(int64_list=tf.train.Int64List(value=parts)),
        }
        for name, v in age.items():
            feature[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[v]))
        return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()

    m = Examples()
    rows = [example([b"a", b"b"], [1.0, 0.5], [1, 2, 3], age=7), example([], [], [])]
    return (
        m.call,
        m,
        [spec([None], tf.string, "examples_bytes")],
        {"examples_bytes": np.array(rows, object)},
    )


@model
def recurrent():
    """Keras' own export of layers with states, masks and both directions."""
    i = tf.keras.Input((None, 3))
    x = L.Masking()(i)
    x = L.Bidirectional(L.LSTM(6, return_sequences=True))(x)
    x = L.GRU(5, reset_after=False, return_sequences=True)(L.Conv1D(6, 3, padding="causal")(x))
    m = tf.keras.Model(i, L.Dense(2)(L.SimpleRNN(4)(x)))
    x = seeded([3, 7, 3], 9)
    x[1, 4:] = 0
    return (lambda x: {"y": m(x)}), m, [spec([None, None, 3], tf.float32, "x")], {"x": x}


@model
def features():
    """Layers that prepare numbers and words."""
    n, w = tf.keras.Input((2,)), tf.keras.Input((1,), dtype="string")
    parts = [
        L.Normalization(mean=[1.0, 2.0], variance=[4.0, 9.0])(n),
        L.Discretization([-1.0, 0.0, 1.0], output_mode="one_hot")(n[:, :1]),
        L.StringLookup(vocabulary=["x", "y"], num_oov_indices=2, output_mode="multi_hot")(w),
        L.Hashing(5, output_mode="one_hot")(w),
    ]
    m = tf.keras.Model([n, w], L.Dense(2)(L.Concatenate()(parts)))
    specs = [spec([None, 2], tf.float32, "n"), spec([None, 1], tf.string, "w")]
    inputs = {"n": np.array([[0.5, 2], [-3, 1]], "f"), "w": np.array([["x"], ["unknown"]])}
    return (lambda n, w: {"y": m([n, w])}), m, specs, inputs


@model
def branches():
    """Conditions, a case, and functions that call each other."""
    m = tf.Module()

    @tf.function
    def factorial(n):
        out = tf.constant(1, tf.int64)
        for k in tf.range(1, n + 1):
            out *= k
        return out

    def call(k, x):
        y = tf.switch_case(k, [lambda: x, lambda: tf.sort(x), lambda: tf.cumsum(x)], lambda: -x)
        z = tf.cond(tf.reduce_sum(x) > 0, lambda: tf.reduce_max(x), lambda: tf.constant(-1.0))
        return {"y": y, "z": z, "f": factorial(tf.cast(k, tf.int64) + 4)}

    m.call = tf.function(call)
    specs = [spec([], tf.int32, "k"), spec([None], tf.float32, "x")]
    return call, m, specs, {"k": np.int32(2), "x": np.array([3, 1, 2], "f")}


@model
def sound():
    """A spectrogram on the mel scale, and its cosine transform."""
    m = tf.Module()
    m.mel = tf.Variable(tf.signal.linear_to_mel_weight_matrix(12, 33, 8000, 100.0, 3800.0))

    def call(wave):
        power = tf.abs(tf.signal.stft(wave, 64, 32, 64)) ** 2
        mel = tf.math.log(power @ m.mel + 1e-3)
        return {
            "mfcc": tf.signal.mfccs_from_log_mel_spectrograms(mel)[..., :5],
            "rms": tf.sqrt(tf.reduce_mean(wave**2, -1)),
        }

    return call, m, [spec([None, None], tf.float32, "wave")], {"wave": seeded([2, 300], 10)}


@model
def halves():
    """Numbers of 16 bits inside, integers of 8 bits and flags outside."""
    m = tf.Module()
    m.w = tf.Variable(tf.cast(seeded([4, 4], 11), tf.bfloat16))

    def call(x, keep):
        y = tf.cast(tf.cast(x, tf.bfloat16) @ m.w, tf.float32)
        q = tf.quantization.fake_quant_with_min_max_args(y, -4, 4)
        return {
            "q": tf.round(q * 8),
            "h": tf.cast(tf.cast(x, tf.float16) / 3, tf.float32),
            "kept": tf.boolean_mask(x, keep),
        }

    specs = [spec([None, 4], tf.int8, "x"), spec([None], tf.bool, "keep")]
    inputs = {
        "x": np.array([[1, 2, -3, 4], [0, 1, 0, 1]], np.int8),
        "keep": np.array([True, False]),
    }
    return call, m, specs, inputs


@model
def graphs():
    """A network on the edges of a graph: gather, segments, sparse products."""
    m = tf.Module()
    m.w1, m.w2 = weights([3, 8], 12), weights([8, 2], 13)

    def call(nodes, edges):
        h, n = tf.nn.elu(nodes @ m.w1), tf.shape(nodes)[0]
        source, target = edges[:, 0], edges[:, 1]
        for _ in range(2):
            total = tf.math.unsorted_segment_sum(tf.gather(h, source), target, n)
            count = tf.math.unsorted_segment_sum(tf.ones_like(source, tf.float32), target, n)
            h = 0.5 * h + total / tf.maximum(count, 1)[:, None]
        adjacency = tf.scatter_nd(tf.reverse(edges, [1]), tf.ones_like(source, tf.float32), [n, n])
        sparse = tf.sparse.from_dense(adjacency)
        return {"y": h @ m.w2, "two": tf.sparse.sparse_dense_matmul(sparse, nodes)}

    specs = [spec([None, 3], tf.float32, "nodes"), spec([None, 2], tf.int32, "edges")]
    inputs = {"nodes": seeded([5, 3], 14), "edges": np.array([[0, 1], [1, 2], [3, 2], [4, 0]], "i")}
    return call, m, specs, inputs


@model
def matching():
    """Nearest neighbors and what they cost, in two stages."""
    m = tf.Module()
    m.items, m.names = (
        tf.Variable(seeded([100, 8], 15)),
        tf.constant([f"item-{i}" for i in range(100)]),
    )

    def call(query, k):
        scores, at = tf.math.top_k(tf.linalg.matmul(query, m.items, transpose_b=True), k)
        return {
            "scores": scores,
            "names": tf.gather(m.names, at),
            "distance": tf.norm(query[:, None] - tf.gather(m.items, at), axis=-1),
        }

    specs = [spec([None, 8], tf.float32, "query"), spec([], tf.int32, "k")]
    return call, m, specs, {"query": seeded([2, 8], 16), "k": np.int32(3)}


@model
def solver():
    """Linear algebra: a fit of a line, and what is left."""
    m = tf.Module()

    def call(x, y):
        a = tf.stack([x, tf.ones_like(x)], -1)
        fit = tf.linalg.lstsq(a, y[..., None])[..., 0]
        u = tf.linalg.cholesky(tf.linalg.matmul(a, a, transpose_a=True) + tf.eye(2))
        rest = tf.linalg.cholesky_solve(u, tf.linalg.matvec(a, y, transpose_a=True)[..., None])
        return {
            "fit": fit,
            "ridge": rest,
            "s": tf.linalg.svd(a, compute_uv=False),
            "det": tf.linalg.det(u),
        }

    specs = [spec([None, None], tf.float32, "x"), spec([None, None], tf.float32, "y")]
    return call, m, specs, {"x": seeded([3, 9], 17), "y": seeded([3, 9], 18)}


def main():
    (FOLDER / "cases").mkdir(parents=True, exist_ok=True)
    for name, make in MODELS.items():
        tf.keras.utils.set_random_seed(1)
        call, owner, specs, inputs = make()
        served = tf.function(call).get_concrete_function(*specs)
        if isinstance(owner, tf.keras.Model):  # is not saved with its variables
            owner, keras = tf.Module(), owner
            owner.values, owner.keras = [v.value for v in keras.variables], keras
        owner.served = served
        tf.saved_model.save(owner, str(FOLDER / "models" / name / "1"), signatures=served)
        out = served(**{k: tf.constant(v) for k, v in inputs.items()})
        case = (
            {"inputs": column(inputs)},
            {"outputs": column({k: v.numpy() for k, v in out.items()})},
        )
        cases = [{"call": "predict", "request": case[0], "want": case[1]}]
        (FOLDER / "cases" / f"{name}.json").write_text(json.dumps(cases))
        print(name, flush=True)


if __name__ == "__main__":
    main()
