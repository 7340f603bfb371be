"""A model that Keras saves, a Go program loads and saves again, and Keras loads as a layer.

    .venv/bin/python -m interop.keras.served DIR

It prints the largest difference of the outputs. interop/test_files.py runs it.
"""

import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
from keras import layers as L

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(folder):
    model = keras.Sequential([
        keras.Input((5, 5, 1)), L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(),
        L.Flatten(), L.Dense(3, activation="softmax")])
    model.save(os.path.join(folder, "model.keras"))
    subprocess.run(["go", "run", "./interop/files", "keras", folder], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    layer = keras.layers.TFSMLayer(
        os.path.join(folder, "saved"), call_endpoint="serving_default")
    again = keras.Sequential([keras.Input((5, 5, 1)), layer])
    x = np.random.default_rng(1).normal(size=(7, 5, 5, 1)).astype("float32")
    print(np.abs(again.predict(x, verbose=0)["outputs"] - model.predict(x, verbose=0)).max())


if __name__ == "__main__":
    main(sys.argv[1])
