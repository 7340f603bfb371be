"""Records what Keras computes, for the Go tests of nn, metrics and train, which need no Python.

    .venv/bin/python -m interop.keras.record

Each layer gets random weights and a random input. The recorded gradients are those of the sum of
the outputs times cos(0), cos(1), cos(2) …
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
import tensorflow as tf
from keras import layers as L

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def array(a):
    a = np.asarray(a)
    if a.dtype.kind == "f":
        flat = [float(np.format_float_positional(np.float32(v), unique=True)) if np.isfinite(v) else None for v in a.ravel()]
    elif a.dtype.kind == "b":
        flat = [int(v) for v in a.ravel()]
    else:
        flat = a.ravel().tolist()
    kind = {"f": "float32", "i": "int32", "b": "bool", "u": "int32"}[a.dtype.kind]
    return {"dtype": kind, "shape": list(a.shape), "values": flat}


def write(path, cases):
    with open(os.path.join(ROOT, path), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print(path, len(cases), os.path.getsize(os.path.join(ROOT, path)))


def weights_of(layer, prefix=""):
    """The variables by their path within the layer."""
    out = {}
    for v in layer.weights:
        path = v.path.split("/")
        if path[0] == layer.name:
            path = path[1:]
        if "seed_generator" in v.path:
            continue
        name = "/".join(p for p in path if p not in ("lstm_cell", "gru_cell", "simple_rnn_cell"))
        out[name] = v
    return out


def layer_case(name, layer, x, rng, training=False, call=None):
    x = np.asarray(x)
    call = call or (lambda x: layer(x, training=training) if training else layer(x))
    call(tf.constant(x))
    weights = weights_of(layer)
    for key, v in weights.items():
        w = rng.normal(0, 0.5, v.shape).astype("float32")
        if "variance" in key:
            w = abs(w) + 0.5
        v.assign(w)
    before = {key: array(v.numpy()) for key, v in weights.items()}
    with tf.GradientTape() as tape:
        t = tf.constant(x)
        if x.dtype.kind == "f":
            tape.watch(t)
        y = call(t)
        factor = tf.reshape(tf.cos(tf.range(tf.size(y), dtype=tf.float32)), tf.shape(y))
        loss = tf.reduce_sum(tf.cast(y, tf.float32) * factor)
    trainable = {k: v for k, v in weights.items() if v.trainable}
    wanted = ([t] if x.dtype.kind == "f" else []) + [v.value for v in trainable.values()]
    grads = [tf.convert_to_tensor(g) if g is not None else None for g in tape.gradient(loss, wanted)]
    case = {"name": name, "training": training, "x": array(x), "weights": before, "y": array(y.numpy())}
    if x.dtype.kind == "f":
        case["dx"] = array(grads.pop(0).numpy())
    case["dweights"] = {k: array(g.numpy()) for k, g in zip(trainable, grads) if g is not None}
    case["after"] = {k: array(v.numpy()) for k, v in weights.items() if not v.trainable}
    case["parameters"] = int(layer.count_params()) if layer.built else 0
    return case


def record_layers():
    rng = np.random.default_rng(1)
    f = lambda *shape: rng.normal(0, 1, shape).astype("float32")
    cases = []
    add = lambda name, layer, x, **k: cases.append(layer_case(name, layer, x, rng, **k))
    add("dense", L.Dense(3, activation="relu"), f(4, 5))
    add("dense without bias", L.Dense(3, use_bias=False), f(2, 3, 5))
    for a in ["relu", "relu6", "sigmoid", "tanh", "softmax", "log_softmax", "softplus", "softsign", "elu", "selu", "exponential",
              "silu", "hard_sigmoid", "mish", "gelu", "leaky_relu"]:
        x = L.Activation(a)
        cases.append(layer_case("activation " + a, x, f(3, 5) * 2, rng))
    add("conv1d", L.Conv1D(4, 3, activation="tanh"), f(2, 7, 3))
    add("conv1d same strides", L.Conv1D(4, 3, strides=2, padding="same"), f(2, 7, 3))
    add("conv1d causal dilated", L.Conv1D(2, 3, padding="causal", dilation_rate=2), f(2, 7, 3))
    add("conv2d", L.Conv2D(4, 3), f(2, 6, 5, 2))
    add("conv2d same strides", L.Conv2D(3, (3, 2), strides=(2, 1), padding="same", use_bias=False), f(2, 6, 5, 2))
    add("conv2d dilated", L.Conv2D(2, 2, dilation_rate=2), f(1, 6, 5, 2))
    add("conv2d groups", L.Conv2D(4, 3, groups=2), f(1, 5, 5, 4))
    add("conv3d", L.Conv3D(2, 2, padding="same"), f(1, 3, 4, 3, 2))
    add("conv3d strides", L.Conv3D(2, (2, 1, 2), strides=(1, 2, 1)), f(1, 3, 4, 3, 2))
    add("conv1d transpose", L.Conv1DTranspose(3, 3, strides=2), f(2, 4, 2))
    add("conv2d transpose", L.Conv2DTranspose(3, 3), f(2, 3, 4, 2))
    add("conv2d transpose same", L.Conv2DTranspose(3, 3, strides=2, padding="same"), f(2, 3, 4, 2))
    add("conv3d transpose", L.Conv3DTranspose(2, 2, strides=2), f(1, 2, 2, 3, 2))
    add("depthwise conv1d", L.DepthwiseConv1D(3, depth_multiplier=2), f(2, 6, 3))
    add("depthwise conv2d", L.DepthwiseConv2D(3, padding="same", strides=2), f(2, 5, 5, 3))
    add("separable conv2d", L.SeparableConv2D(4, 3, depth_multiplier=2), f(1, 5, 5, 3))
    for kind in ["Max", "Average"]:
        add(kind.lower() + " pooling1d", getattr(L, kind + "Pooling1D")(2), f(2, 7, 3))
        add(kind.lower() + " pooling2d", getattr(L, kind + "Pooling2D")(3, strides=2, padding="same"), f(2, 6, 5, 2))
        add(kind.lower() + " pooling3d", getattr(L, kind + "Pooling3D")((1, 2, 2)), f(1, 3, 4, 5, 2))
        for n, shape in [(1, (2, 5, 3)), (2, (2, 4, 3, 3)), (3, (1, 2, 3, 2, 3))]:
            add("global %s pooling%dd" % (kind.lower(), n), getattr(L, "Global%sPooling%dD" % (kind, n))(keepdims=n == 2), f(*shape))
    add("batch normalization", L.BatchNormalization(), f(4, 3))
    add("batch normalization training", L.BatchNormalization(momentum=0.9), f(6, 3), training=True)
    add("batch normalization images", L.BatchNormalization(), f(2, 3, 4, 3))
    add("batch normalization images training", L.BatchNormalization(epsilon=1e-2), f(2, 3, 4, 3), training=True)
    add("batch normalization plain", L.BatchNormalization(center=False, scale=False), f(2, 5, 3), training=True)
    add("layer normalization", L.LayerNormalization(), f(2, 4, 6))
    add("group normalization", L.GroupNormalization(groups=2), f(2, 3, 3, 4))
    add("embedding", L.Embedding(7, 4), rng.integers(0, 7, (3, 5)).astype("int32"))
    add("flatten", L.Flatten(), f(2, 3, 4))
    add("reshape", L.Reshape((4, -1)), f(2, 2, 6))
    add("up sampling2d", L.UpSampling2D(2), f(1, 2, 3, 2))
    add("zero padding", L.ZeroPadding2D(((1, 0), (2, 1))), f(1, 2, 3, 2))
    add("simple rnn", L.SimpleRNN(3), f(2, 4, 2))
    add("lstm", L.LSTM(3), f(2, 4, 2))
    add("lstm sequences", L.LSTM(3, return_sequences=True), f(2, 4, 2))
    add("lstm backwards", L.LSTM(3, return_sequences=True, go_backwards=True, use_bias=False), f(2, 4, 2))
    add("gru", L.GRU(3), f(2, 4, 2))
    add("gru sequences", L.GRU(3, return_sequences=True), f(2, 4, 2))
    add("gru without bias", L.GRU(3, use_bias=False), f(2, 4, 2))
    add("bidirectional lstm", L.Bidirectional(L.LSTM(3, return_sequences=True, name="lstm")), f(2, 4, 2))
    add("bidirectional gru sum", L.Bidirectional(L.GRU(3, name="gru"), merge_mode="sum"), f(2, 4, 2))
    mask = tf.constant([[True, True, True, False], [True, True, False, False]])
    for name, layer in [("masked lstm", L.LSTM(3, return_sequences=True)), ("masked gru", L.GRU(3)),
                        ("masked lstm backwards", L.LSTM(3, go_backwards=True)),
                        ("masked bidirectional lstm", L.Bidirectional(L.LSTM(3, name="lstm")))]:
        add(name, layer, f(2, 4, 2), call=lambda x, layer=layer: layer(x, mask=mask))
    mha = lambda **k: L.MultiHeadAttention(num_heads=2, key_dim=3, **k)
    a = mha()
    add("attention", a, f(2, 4, 5), call=lambda x, a=a: a(x, x))
    b = mha(value_dim=2, output_shape=3)
    add("attention value dim", b, f(2, 4, 5), call=lambda x, b=b: b(x, x))
    c = mha(use_bias=False)
    add("attention causal", c, f(2, 4, 5), call=lambda x, c=c: c(x, x, use_causal_mask=True))
    d = mha()
    add("attention masked", d, f(2, 4, 5), call=lambda x, d=d: d(x, x, attention_mask=mask[:, tf.newaxis, :]))
    write("nn/testdata/layers.json", cases)


def record_losses():
    rng = np.random.default_rng(2)
    f = lambda *shape: rng.normal(0, 1, shape).astype("float32")
    u = lambda *shape: rng.uniform(0.05, 0.95, shape).astype("float32")
    one_hot = lambda n, k: np.eye(k, dtype="float32")[rng.integers(0, k, n)]
    probabilities = lambda *shape: tf.nn.softmax(f(*shape)).numpy()
    K, N = keras.losses, dict(reduction="none")
    cases = []

    def add(name, loss, labels, predictions):
        p = tf.constant(predictions)
        with tf.GradientTape() as tape:
            tape.watch(p)
            y = loss(tf.constant(labels), p)
            total = tf.reduce_mean(y)
        cases.append({"name": name, "labels": array(labels), "predictions": array(predictions), "losses": array(y.numpy()),
                      "gradient": array(tape.gradient(total, p).numpy())})

    add("mean squared error", K.MeanSquaredError(**N), f(4, 3), f(4, 3))
    add("mean squared error column", K.MeanSquaredError(**N), f(4), f(4, 1))
    add("mean absolute error", K.MeanAbsoluteError(**N), f(4, 3), f(4, 3))
    add("mean absolute percentage error", K.MeanAbsolutePercentageError(**N), f(4, 3) + 3, f(4, 3))
    add("mean squared logarithmic error", K.MeanSquaredLogarithmicError(**N), u(4, 3), u(4, 3) * 3)
    add("huber", K.Huber(**N), f(4, 3) * 2, f(4, 3))
    add("huber delta", K.Huber(delta=0.5, **N), f(4, 3), f(4, 3))
    add("log cosh", K.LogCosh(**N), f(4, 3), f(4, 3))
    add("hinge", K.Hinge(**N), np.sign(f(4, 3)), f(4, 3))
    add("hinge binary", K.Hinge(**N), rng.integers(0, 2, (4, 3)).astype("float32"), f(4, 3))
    add("squared hinge", K.SquaredHinge(**N), np.sign(f(4, 3)), f(4, 3))
    add("categorical hinge", K.CategoricalHinge(**N), one_hot(4, 3), f(4, 3))
    add("kl divergence", K.KLDivergence(**N), probabilities(4, 3), probabilities(4, 3))
    add("poisson", K.Poisson(**N), rng.integers(0, 4, (4, 3)).astype("float32"), u(4, 3))
    add("cosine similarity", K.CosineSimilarity(**N), f(4, 3), f(4, 3))
    add("binary", K.BinaryCrossentropy(**N), rng.integers(0, 2, (5, 1)).astype("float32"), u(5, 1))
    add("binary logits", K.BinaryCrossentropy(from_logits=True, **N), rng.integers(0, 2, (5, 2)).astype("float32"), f(5, 2))
    add("binary smoothing", K.BinaryCrossentropy(from_logits=True, label_smoothing=0.2, **N), rng.integers(0, 2, (5, 1)).astype("float32"), f(5, 1))
    add("categorical", K.CategoricalCrossentropy(**N), one_hot(4, 3), probabilities(4, 3))
    add("categorical logits", K.CategoricalCrossentropy(from_logits=True, **N), one_hot(4, 3), f(4, 3))
    add("categorical smoothing", K.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1, **N), one_hot(4, 3), f(4, 3))
    add("sparse", K.SparseCategoricalCrossentropy(**N), rng.integers(0, 3, 4).astype("int32"), probabilities(4, 3))
    add("sparse logits", K.SparseCategoricalCrossentropy(from_logits=True, **N), rng.integers(0, 3, (4, 1)).astype("int32"), f(4, 3))
    add("sparse sequences", K.SparseCategoricalCrossentropy(from_logits=True, **N), rng.integers(0, 3, (2, 4)).astype("int32"), f(2, 4, 3))
    labels = np.array([[1, 2, 2, 0], [3, 1, 0, 0], [1, 1, 2, 3]], "int32")
    add("ctc", K.CTC(**N), labels, f(3, 8, 4))
    write("nn/testdata/losses.json", cases)


def record_rules():
    """Regularizers and constraints."""
    rng = np.random.default_rng(3)
    w = rng.normal(0, 1, (4, 3)).astype("float32") * 2
    R, C = keras.regularizers, keras.constraints
    cases = []
    for name, rule in [("l1", R.L1(0.1)), ("l2", R.L2(0.2)), ("l1l2", R.L1L2(0.1, 0.2)), ("max norm", C.MaxNorm(2)),
                       ("min max norm", C.MinMaxNorm(0.5, 2, 0.7)), ("unit norm", C.UnitNorm()), ("non neg", C.NonNeg())]:
        cases.append({"name": name, "w": array(w), "result": array(np.asarray(rule(tf.constant(w))))})
    write("nn/testdata/rules.json", cases)


def record_metrics():
    rng = np.random.default_rng(4)
    f = lambda *shape: rng.normal(0, 1, shape).astype("float32")
    u = lambda *shape: rng.uniform(0, 1, shape).astype("float32")
    one_hot = lambda n, k: np.eye(k, dtype="float32")[rng.integers(0, k, n)]
    bits = lambda *shape: rng.integers(0, 2, shape).astype("float32")
    classes = lambda *shape: rng.integers(0, 4, shape).astype("int32")
    M = keras.metrics
    cases = []

    def add(name, metric, labels, predictions, weighted=False):
        batches = []
        for _ in range(3):
            y, p = labels(), predictions()
            w = u(len(y)) if weighted else None
            metric.update_state(y, p, sample_weight=w)
            b = {"labels": array(y), "predictions": array(p), "result": array(np.asarray(metric.result(), "float32"))}
            if weighted:
                b["weights"] = array(w)
            batches.append(b)
        cases.append({"name": name, "batches": batches})

    logits = lambda: f(6, 4)
    for weighted in (False, True):
        more = " weighted" if weighted else ""
        add("accuracy" + more, M.Accuracy(), lambda: classes(6), lambda: classes(6), weighted)
        add("binary accuracy" + more, M.BinaryAccuracy(), lambda: bits(6, 1), lambda: u(6, 1), weighted)
        add("sparse accuracy" + more, M.SparseCategoricalAccuracy(), lambda: classes(6), logits, weighted)
        add("precision" + more, M.Precision(), lambda: bits(6, 1), lambda: u(6, 1), weighted)
        add("recall" + more, M.Recall(), lambda: bits(6, 1), lambda: u(6, 1), weighted)
        add("auc" + more, M.AUC(), lambda: bits(20, 1), lambda: u(20, 1), weighted)
        add("mean absolute error" + more, M.MeanAbsoluteError(), lambda: f(6, 1), lambda: f(6, 1), weighted)
        add("root mean squared error" + more, M.RootMeanSquaredError(), lambda: f(6, 1), lambda: f(6, 1), weighted)
        add("r2" + more, M.R2Score(), lambda: f(6, 1), lambda: f(6, 1), weighted)
    add("categorical accuracy", M.CategoricalAccuracy(), lambda: one_hot(6, 4), logits)
    add("top k", M.TopKCategoricalAccuracy(k=2), lambda: one_hot(6, 4), logits)
    add("sparse top k", M.SparseTopKCategoricalAccuracy(k=2), lambda: classes(6), logits)
    add("precision thresholds", M.Precision(thresholds=0.3), lambda: bits(6, 2), lambda: u(6, 2))
    add("auc pr", M.AUC(curve="PR"), lambda: bits(20, 1), lambda: u(20, 1))
    add("auc few thresholds", M.AUC(num_thresholds=11), lambda: bits(20, 1), lambda: u(20, 1))
    add("f1 micro", M.F1Score(average="micro"), lambda: one_hot(6, 3), lambda: u(6, 3))
    add("f1 macro", M.F1Score(average="macro", threshold=0.5), lambda: bits(6, 3), lambda: u(6, 3))
    add("f1 weighted", M.F1Score(average="weighted", threshold=0.5), lambda: bits(6, 3), lambda: u(6, 3))
    add("mean squared error", M.MeanSquaredError(), lambda: f(6, 2), lambda: f(6, 2))
    add("mean absolute percentage error", M.MeanAbsolutePercentageError(), lambda: f(6, 1) + 3, lambda: f(6, 1))
    add("mean squared logarithmic error", M.MeanSquaredLogarithmicError(), lambda: u(6, 1), lambda: u(6, 1))
    add("mean iou", M.MeanIoU(num_classes=4), lambda: classes(6), lambda: classes(6))
    write("metrics/testdata/metrics.json", cases)


def record_optimizers():
    rng = np.random.default_rng(5)
    O = keras.optimizers
    start = rng.normal(0, 1, (4, 2)).astype("float32")
    grads = [rng.normal(0, 1, (4, 2)).astype("float32") for _ in range(4)]
    cases = []
    for name, o in [
        ("sgd", O.SGD(0.1)), ("momentum", O.SGD(0.1, momentum=0.9)), ("nesterov", O.SGD(0.1, momentum=0.9, nesterov=True)),
        ("adam", O.Adam(0.01, epsilon=1e-8)), ("amsgrad off", O.Adam(0.01, beta_1=0.8, beta_2=0.99)),
        ("adamw", O.AdamW(0.01, weight_decay=0.1)),
        ("adagrad", O.Adagrad(0.1, epsilon=0.0)), ("adadelta", O.Adadelta(1.0, rho=0.95, epsilon=1e-7)),
        ("rmsprop", O.RMSprop(0.01)), ("rmsprop momentum centered", O.RMSprop(0.01, momentum=0.9, centered=True)),
        ("ftrl", O.Ftrl(0.1, l1_regularization_strength=0.01, l2_regularization_strength=0.02)),
    ]:
        v = keras.Variable(start)
        values = []
        for g in grads:
            o.apply_gradients([(tf.constant(g), v)])
            values.append(array(v.numpy()))
        cases.append({"name": name, "start": array(start), "gradients": [array(g) for g in grads], "values": values})
    write("train/testdata/keras_optimizers.json", cases)
    S = O.schedules
    cases = []
    for name, s in [("exponential", S.ExponentialDecay(0.1, 10, 0.5)), ("exponential staircase", S.ExponentialDecay(0.1, 10, 0.5, True)),
                    ("polynomial", S.PolynomialDecay(0.1, 20, 0.01, 2.0)), ("cosine", S.CosineDecay(0.1, 20, alpha=0.1)),
                    ("cosine restarts", S.CosineDecayRestarts(0.1, 6)), ("inverse time", S.InverseTimeDecay(0.1, 10, 0.5)),
                    ("piecewise", S.PiecewiseConstantDecay([5, 15], [0.1, 0.05, 0.01]))]:
        cases.append({"name": name, "rates": [float(np.float32(s(tf.constant(i)))) for i in range(25)]})
    write("train/testdata/keras_schedules.json", cases)


if __name__ == "__main__":
    keras.utils.set_random_seed(1)
    record_layers()
    record_losses()
    record_rules()
    record_metrics()
    record_optimizers()
