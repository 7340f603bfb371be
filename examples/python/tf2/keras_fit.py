"""Trains a Keras model with ParameterServerStrategy on Weft's servers.

  pip install tf_keras
  weft launch --layout=coordinator --ps=1 --workers=2 -- python keras_fit.py

Keras 3, which is part of TensorFlow, has no ParameterServerStrategy; the package tf_keras has.
"""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
import tensorflow as tf
import tf_keras

from parameter_server import CLASSES, dataset, samples


def main():
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    with strategy.scope():
        model = tf_keras.Sequential([
            tf_keras.layers.Dense(32, activation="relu"),
            tf_keras.layers.Dense(CLASSES),
        ])
        loss = tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(optimizer=tf_keras.optimizers.Adam(0.01), loss=loss, metrics=["accuracy"])
    creator = tf_keras.utils.experimental.DatasetCreator(dataset)
    history = model.fit(creator, epochs=4, steps_per_epoch=50, verbose=2)
    features, labels = next(samples(99))
    predicted = model(features).numpy().argmax(axis=1)
    print("last loss %.3f, test accuracy %.2f" % (history.history["loss"][-1], (predicted == labels).mean()))


if __name__ == "__main__":
    main()
