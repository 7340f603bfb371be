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


def resnet():
    def convolution(filters, kernel, stride=1):
        return L.Conv2D(filters, kernel, stride, padding="same", use_bias=False,
                        kernel_initializer="he_normal", kernel_regularizer=keras.regularizers.L2(1e-4))

    def block(x, filters, stride, widen):
        y = L.BatchNormalization(momentum=0.9)(convolution(filters, 3, stride)(x))
        y = convolution(filters, 3)(L.Activation("relu")(y))
        y = L.BatchNormalization(momentum=0.9)(y)
        if widen:
            x = convolution(filters, 1, stride)(x)
        return L.Activation("relu")(L.Add()([x, y]))

    image = keras.Input((32, 32, 3))
    x = L.Conv2D(16, 3, padding="same", use_bias=False, kernel_initializer="he_normal")(image)
    x = L.Activation("relu")(L.BatchNormalization(momentum=0.9)(x))
    for stage in range(3):
        for i in range(3):
            first = stage > 0 and i == 0
            x = block(x, 16 << stage, 2 if first else 1, first)
    model = keras.Model(image, L.Dense(10)(L.GlobalAveragePooling2D()(x)))
    model.compile(keras.optimizers.Adam(0.003),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["sparse_categorical_accuracy"])
    data = lambda n: (numbers(n, 32, 32, 3), classes(10, n))
    return model, data(1500), 20, data(200), 100


class Positions(L.Layer):
    """Adds a learned vector for each step of a sequence."""

    def build(self, shape):
        self.table = self.add_weight(shape=shape[1:])

    def call(self, x):
        return x + self.table


def transformer():
    tokens = keras.Input((10,), dtype="int32")
    x = Positions()(L.Embedding(10, 32)(tokens))
    for _ in range(2):
        y = L.LayerNormalization()(x)
        x = L.Add()([x, L.MultiHeadAttention(4, 8)(y, y)])
        y = L.Dense(64, activation="gelu")(L.LayerNormalization()(x))
        x = L.Add()([x, L.Dense(32)(y)])
    model = keras.Model(tokens, L.Dense(10)(L.LayerNormalization()(x)))
    rate = keras.optimizers.schedules.CosineDecay(0.004, 1880)
    model.compile(keras.optimizers.Adam(rate, global_clipnorm=1),
                  keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                  metrics=["sparse_categorical_accuracy"])
    data = lambda n: (classes(10, n, 10), classes(10, n, 10))
    return model, data(6000), 32, data(200), 100


def collaborative():
    """In one process: Keras needs no parameter servers for a table of this size."""
    user, item = keras.Input((), dtype="int32"), keras.Input((), dtype="int32")
    table = lambda rows, width, x: L.Embedding(rows, width)(x)
    taste = L.Dot(axes=1)([table(400, 4, user), table(300, 4, item)])
    model = keras.Model([user, item], L.Add()([taste, table(400, 1, user), table(300, 1, item)]))
    model.compile(keras.optimizers.Adam(0.02), "mse",
                  metrics=[keras.metrics.RootMeanSquaredError()])
    data = lambda n: ([classes(400, n), classes(300, n)], numbers(n))
    return model, data(40000), 128, data(2000), 500


MODELS = {
    "cnn": cnn, "resnet": resnet, "charlstm": charlstm, "text": text, "widedeep": widedeep,
    "transformer": transformer, "collaborative": collaborative,
}


def main(name, epochs):
    model, training, batch, test, test_batch = MODELS[name]()
    start = time.perf_counter()
    model.fit(*training, batch_size=batch, epochs=epochs, verbose=0, validation_data=test,
              validation_batch_size=test_batch)
    print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
