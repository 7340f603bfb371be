"""The programs of docs/tutorial.md in Python, with TensorFlow and Keras: the same steps and figures.

    python tutorial.py                        # sessions in this process
    python tutorial.py grpc://localhost:2222  # sessions on a server of Weft
"""

import os
import sys
import tempfile

import keras
import numpy as np
import tensorflow as tf


def constant(target):
    with tf.Graph().as_default():
        hello = tf.constant("hello")
        with tf.compat.v1.Session(target) as sess:
            print(sess.run(hello).decode())


def placeholder(target):
    with tf.Graph().as_default():
        celsius = tf.compat.v1.placeholder(tf.float32)
        fahrenheit = celsius * 1.8 + 32
        with tf.compat.v1.Session(target) as sess:
            print([round(float(f)) for f in sess.run(fahrenheit, {celsius: [0, 20, 100]})])


def variable(target):
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32)
        y = tf.compat.v1.placeholder(tf.float32)
        factor = tf.compat.v1.get_variable("factor", [], initializer=tf.zeros_initializer())
        offset = tf.compat.v1.get_variable("offset", [], initializer=tf.zeros_initializer())
        loss = tf.reduce_mean(tf.math.squared_difference(x * factor + offset, y))
        update = tf.compat.v1.train.GradientDescentOptimizer(0.2).minimize(loss)
        with tf.compat.v1.Session(target) as sess:
            sess.run(tf.compat.v1.global_variables_initializer())
            for _ in range(300):
                sess.run(update, {x: [0, 1, 2], y: [32, 33.8, 35.6]})
            print("%.1f %.1f" % tuple(sess.run([factor, offset])))


def circle(n):
    """Returns n points of a square, with the label 1 for those within a circle."""
    i = np.arange(n)
    points = np.stack([i * 0.618 % 1 * 2 - 1, i * 0.755 % 1 * 2 - 1], 1).astype("float32")
    return points, ((points**2).sum(1) < 0.5).astype("float32")


def network():
    keras.utils.set_random_seed(1)
    points, labels = circle(1000)
    order = np.random.default_rng(1).permutation(1000)
    training, test = order[:800], order[800:]
    model = keras.Sequential([
        keras.Input((2,)),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["binary_accuracy"])
    best = keras.callbacks.EarlyStopping(patience=30, restore_best_weights=True)
    history = model.fit(
        points[training], labels[training], batch_size=32, epochs=30, verbose=0, callbacks=[best],
        validation_data=(points[test], labels[test]), validation_batch_size=100)
    print(history.history["val_binary_accuracy"][-1] > 0.95)
    for row in model.predict(np.array([[0, 0], [0.9, 0.9]], "float32"), verbose=0):
        print("%.0f" % row[0])

    with tempfile.TemporaryDirectory() as folder:
        model.export(os.path.join(folder, "circle", "1"), verbose=False)
        served = tf.saved_model.load(os.path.join(folder, "circle", "1"))
        out = served.signatures["serving_default"](tf.constant([[0.1, -0.2]]))
        print("%.0f" % next(iter(out.values()))[0, 0])


def main():
    target = sys.argv[1] if len(sys.argv) > 1 else ""
    constant(target)
    placeholder(target)
    variable(target)
    network()


if __name__ == "__main__":
    main()
