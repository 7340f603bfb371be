"""The registry of kernel cases, and inputs that several cases use.

A case is a function that builds one node from its inputs.
"""

import numpy as np
import tensorflow.compat.v1 as tf

raw = tf.raw_ops

LARGE, SMALL = 1 << 20, 1 << 16  # numbers of elements
INDICES = np.random.RandomState(1).randint(0, 10000, 4096).astype(np.int32)
# Indices of 4096 elements of a 512x1000 matrix, ordered by row.
POSITIONS = np.stack([np.sort(INDICES % 512), INDICES[::-1] % 1000], 1).astype(np.int64)


class Update:
    """The inputs of a case that updates variables of one shape.

    They are a gradient, the variable and its slots, followed by further inputs.
    """

    def __init__(self, shape, slots, gradient=None, further=()):
        self.shape, self.slots, self.further = shape, slots, further
        self.gradient = gradient or shape


class Of:
    """An input of another type than float32."""

    def __init__(self, dtype, *shape):
        self.dtype, self.shape = dtype, shape


def value(given, seed):
    """Returns the initial value of an input.

    An array is returned as it is. Otherwise the elements are random: in [0, 1), or in [0, 100) for
    integers.
    """
    if isinstance(given, Of):
        high = 100 if given.dtype.is_integer else 1
        return tf.cast(
            tf.random.stateless_uniform(given.shape, seed, maxval=high)
            if given.dtype != tf.bool
            else tf.random.stateless_uniform(given.shape, seed) < 0.5,
            given.dtype,
        )
    return (
        tf.random.stateless_uniform(given, seed) if isinstance(given, list) else tf.constant(given)
    )


FAMILIES = {}  # family: {case: (inputs, build)}


def case(family, name, inputs, build):
    """Registers a case.

    An input is the shape of a float32 tensor, an Of or an array. build returns the node for the
    input tensors.
    """
    FAMILIES.setdefault(family, {})[name] = (inputs, build)


def scalars(*values):
    return [tf.constant(v, tf.float32) for v in values]
