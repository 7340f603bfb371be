"""The networks of examples/models in Keras, on random data of the same shapes.

    python -m bench.endtoend.kerasmodels cnn 2    # the seconds of two epochs with validation

The values of the data do not matter for the time.
"""

import os
import sys
import time

os.environ["KERAS_BACKEND"] = "tensorflow"

import keras
import numpy as np
from keras import layers as L

RNG = np.random.default_rng(1)


def numbers(*shape):
    return RNG.normal(size=shape).astype("float32")


def classes(n, *shape):
    return RNG.integers(0, n, shape).astype("int32")


def cnn():
    model = keras.Sequential([
        keras.Input((28, 28, 1)), L.Conv2D(16, 3, activation="relu"), L.MaxPooling2D(),
        L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dropout(0.2),
        L.Dense(10)])
    model.compile(keras.optimizers.Adam(0.001),
                  keras.losses.CategoricalCrossentropy(from_logits=True),
                  metrics=["categorical_accuracy"])
    data = lambda n: (numbers(n, 28, 28, 1), np.eye(10, dtype="float32")[classes(10, n)])
    return model, data(4000), 32, data(500), 100


def charlstm():
    model = keras.Sequential([
        keras.Input((40,), dtype="int32"), L.Embedding(28, 16), L.LSTM(64, return_sequences=True),
        L.Dense(28)])
    model.compile(keras.optimizers.Adam(0.01, global_clipnorm=1),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["sparse_categorical_accuracy"])
    data = lambda n: (classes(28, n, 40), classes(28, n, 40))
    return model, data(2000), 20, data(100), 50


def text():
    model = keras.Sequential([
        keras.Input((20,), dtype="int32"), L.Embedding(31, 16, mask_zero=True),
        L.GlobalAveragePooling1D(), L.Dense(16, activation="relu"), L.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), keras.losses.BinaryCrossentropy(from_logits=True),
                  metrics=["binary_accuracy"])

    def data(n):
        words = classes(30, n, 20) + 1
        words[np.arange(20) >= RNG.integers(5, 21, (n, 1))] = 0
        return words, classes(2, n).astype("float32")

    return model, data(4000), 32, data(300), 100


def widedeep():
    place, job = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    table = keras.Input((3,))
    wide = L.Embedding(180, 1)(place * 15 + job)
    deep = L.Concatenate()([L.Embedding(12, 4)(place), L.Embedding(15, 4)(job), table])
    deep = L.Dense(1)(L.Dense(16, activation="relu")(L.Dense(32, activation="relu")(deep)))
    model = keras.Model([place, job, table], L.Activation("sigmoid")(L.Add()([wide, deep])))
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy",
                  metrics=[keras.metrics.AUC(), "binary_accuracy"])

    def data(n):
        return [classes(12, n), classes(15, n), numbers(n, 3)], classes(2, n).astype("float32")

    return model, data(20000), 64, data(2000), 500


MODELS = {"cnn": cnn, "charlstm": charlstm, "text": text, "widedeep": widedeep}


def main(name, epochs):
    model, training, batch, test, test_batch = MODELS[name]()
    start = time.perf_counter()
    model.fit(*training, batch_size=batch, epochs=epochs, verbose=0, validation_data=test,
              validation_batch_size=test_batch)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
