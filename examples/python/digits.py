"""Digits for training: the four MNIST files in a folder, or ten generated noisy patterns."""

import gzip
import os

import numpy as np


class Split(object):
    """Images [n, 784] in [0, 1] and one-hot labels [n, 10], returned in batches."""

    def __init__(self, images, labels, seed=0):
        self.images, self.labels = images, labels
        self.rng, self.order = np.random.RandomState(seed), np.empty(0, np.int64)

    def next_batch(self, size):
        while len(self.order) < size:
            self.order = np.concatenate([self.order, self.rng.permutation(len(self.images))])
        rows, self.order = self.order[:size], self.order[size:]
        return self.images[rows], self.labels[rows]


def read_data_sets(data_dir="", seed=0):
    """Returns (train, test). The seed determines the order of the batches."""
    if not data_dir:
        return Split(*draw(10000, 1), seed=seed), Split(*draw(2000, 2))

    def load(prefix):
        images = (
            read_idx(data_dir, prefix + "-images-idx3-ubyte").reshape(-1, 784).astype(np.float32)
            / 255
        )
        return (
            images,
            np.eye(10, dtype=np.float32)[read_idx(data_dir, prefix + "-labels-idx1-ubyte")],
        )

    return Split(*load("train"), seed=seed), Split(*load("t10k"))


def read_idx(data_dir, name):
    path = os.path.join(data_dir, name)
    opened = open(path, "rb") if os.path.exists(path) else gzip.open(path + ".gz")
    with opened as f:
        data = np.frombuffer(f.read(), np.uint8)
    return data[4 + 4 * int(data[3]) :]


def draw(n, seed):
    """Ten random coarse patterns, with random shift of up to 5 pixels, intensity and noise."""
    patterns = np.kron(np.random.RandomState(7).rand(10, 7, 7) > 0.6, np.ones((4, 4)))
    rng = np.random.RandomState(seed)
    digit, shift = rng.randint(0, 10, n), rng.randint(-5, 6, (n, 2))
    images = np.stack([np.roll(patterns[d], s, (0, 1)) for d, s in zip(digit, shift)]).reshape(
        n, 784
    )
    images = images * (0.4 + 0.6 * rng.rand(n, 1)) + 0.3 * rng.randn(n, 784)
    return np.clip(images, 0, 1).astype(np.float32), np.eye(10, dtype=np.float32)[digit]
