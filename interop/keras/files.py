"""Writes models of Keras and what they compute, and a file of all parts of HDF5 that can be read,
for the Go tests of nn and internal/format/hdf5, which need no Python.

    .venv/bin/python -m interop.keras.files
"""

import json
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["KERAS_BACKEND"] = "tensorflow"

import h5py
import keras
import numpy as np
from keras import layers as L

from interop.keras.record import ROOT, array

DIR = os.path.join(ROOT, "nn/testdata/keras")


def images():
    return keras.Sequential([
        keras.Input((8, 8, 1)), L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(),
        L.MaxPooling2D(), L.DepthwiseConv2D(2), L.Flatten(), L.Dense(6, activation="relu"),
        L.Dropout(0.5), L.Dense(3, activation="softmax")])


def text():
    return keras.Sequential([
        keras.Input((5,), dtype="int32"), L.Embedding(10, 4, mask_zero=True),
        L.Bidirectional(L.LSTM(3, return_sequences=True)), L.GRU(3), L.Dense(2)])


def attention():
    x = keras.Input((6, 8))
    y = L.LayerNormalization()(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x)]))
    y = L.Dense(2)(L.GlobalAveragePooling1D()(y))
    return keras.Model(x, y)


def nested():
    inner = keras.Sequential([
        L.Dense(4, activation="tanh", name="wide"), L.Dense(3, name="narrow")])
    return keras.Sequential([keras.Input((2,)), L.Dense(3, dtype="float16", name="first"), inner,
                             L.Dense(2, dtype="bfloat16", name="third"), L.Dense(1, name="last")])


def record(name, model, files, rng):
    for v in model.weights:
        if "seed_generator" in v.path:
            continue
        w = rng.normal(0, 0.5, v.shape)
        v.assign(abs(w) + 0.5 if "variance" in v.path else w)
    shape = (3,) + model.input_shape[1:]
    if name == "text":
        x = np.array([[1, 2, 3, 4, 5], [9, 8, 7, 0, 0], [3, 3, 0, 0, 0]], "int32")
    else:
        x = rng.normal(0, 1, shape).astype("float32")
    for file in files:
        path = os.path.join(DIR, file)
        model.save_weights(path) if file.endswith(".weights.h5") else model.save(path)
    y = np.asarray(model(x), "float32")
    return {"name": name, "files": files, "x": array(x), "y": array(y)}


def parts(path):
    """Writes a file whose datasets and attributes are of all kinds."""
    with h5py.File(path, "w") as f:
        for kind in ["<f2", "<f4", "<f8", ">f4"]:
            f.create_dataset("floats/" + kind, data=np.array([[1.5, -2], [0.25, 8]], kind))
        f["scalar"] = np.float32(3)
        f["empty"] = np.zeros((0, 3), "float32")
        f["integers"] = np.arange(3)
        f["unwritten"] = f.create_dataset("later", (2,), "float32")
        f["chunks"] = f.create_dataset("pieces", (4,), "float32", chunks=(2,))
        packed = f.create_dataset("packed", (4,), "float32", chunks=(2,), compression="gzip")
        f["compressed"] = packed
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        pair = h5py.h5s.create_simple((2,))
        d = h5py.h5d.create(f.id, b"compact", h5py.h5t.IEEE_F32LE, pair, compact)
        d.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([7, 9], "float32"))
        f.attrs["text"] = "grüße"
        f.attrs["texts"] = ["one", "", "three"]
        f.attrs["fixed"] = np.array([b"ab", b"c"])
        f.attrs["none"] = np.array([], "S1")
        f.attrs["number"] = 7
        for i in range(40):  # more than the first block of the object header holds
            f["scalar"].attrs["attribute %d" % i] = "value %d" % i
        for i in range(300):  # more than one node of the B-tree holds
            f["many/member %d" % i] = f["scalar"]
        f["many/link"] = h5py.SoftLink("/scalar")


def seed(path):
    """Writes a small file to begin fuzzing with."""
    with h5py.File(path, "w") as f:
        f["group/floats"] = np.array([1, 2], "float32")
        f["group"].attrs["text"] = "one"
        f["group"].attrs["fixed"] = np.array([b"ab", b"c"])


def main():
    seed(os.path.join(ROOT, "internal/format/hdf5/testdata/seed.h5"))
    parts(os.path.join(ROOT, "internal/format/hdf5/testdata/parts.h5"))
    os.makedirs(DIR, exist_ok=True)
    keras.utils.set_random_seed(1)
    rng = np.random.default_rng(1)
    cases = [
        record("images", images(), ["images.keras", "images.h5"], rng),
        record("text", text(), ["text.keras", "text.h5", "text.weights.h5"], rng),
        record("attention", attention(), ["attention.keras", "attention.h5"], rng),
        record("nested", nested(), ["nested.keras"], rng),
    ]
    with open(os.path.join(DIR, "outputs.json"), "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")


if __name__ == "__main__":
    main()
