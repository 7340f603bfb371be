"""Small data sets in the formats that programs of the time read: MNIST's idx files, CIFAR-10's."""

import gzip
import os
import random
import struct

CLASSES = 10


def pictures(count, seed, side):
    """Yields (class, pixels): four by four dark or bright squares for each class, with noise."""
    patterns = random.Random(42)
    of_class = []
    for _ in range(CLASSES):
        squares = [patterns.choice((20, 220)) for _ in range(16)]
        pixels = range(side * side)
        of_class.append([squares[i // side * 4 // side * 4 + i % side * 4 // side] for i in pixels])
    noise = random.Random(seed)
    for _ in range(count):
        label = noise.randrange(CLASSES)
        pixels = bytearray(of_class[label])
        for _ in range(side * side // 10):
            pixels[noise.randrange(side * side)] = noise.randrange(256)
        yield label, bytes(pixels)


def mnist(folder, train=6000, test=500):
    """Writes the four files of MNIST. The reader of the time keeps 5000 images for validation."""
    os.makedirs(folder, exist_ok=True)
    for name, count, seed in (("train", train, 1), ("t10k", test, 2)):
        rows = list(pictures(count, seed, 28))
        for kind, head, body in (
            ("images-idx3", struct.pack(">4i", 0x803, count, 28, 28), b"".join(p for _, p in rows)),
            ("labels-idx1", struct.pack(">2i", 0x801, count), bytes(label for label, _ in rows)),
        ):
            path = os.path.join(folder, f"{name}-{kind}-ubyte.gz")
            with gzip.open(path, "wb", compresslevel=1) as f:
                f.write(head + body)


def cifar10(folder, files=5, count=200):
    """Writes CIFAR-10's binary files: a byte of the class, then the red, green and blue planes."""
    os.makedirs(folder, exist_ok=True)
    for k in range(1, files + 1):
        with open(os.path.join(folder, f"data_batch_{k}.bin"), "wb") as f:
            for label, pixels in pictures(count, 10 + k, 32):
                f.write(bytes([label]) + 3 * pixels)
