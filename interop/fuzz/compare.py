"""The comparison of results."""

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

# Tolerances relative to the largest element of a result. The order of sums and the polynomials that
# approximate functions differ.
TOLERANCE = {
    "float32": 2e-5,
    "complex64": 5e-5,
    "float64": 1e-10,
    "complex128": 1e-10,
    "float16": 5e-3,
    "bfloat16": 3e-2,
}


def difference(theirs, ours, undefined=(), tolerances=None):
    """Returns a description of how two lists of arrays differ, or None.

    Of undefined outputs, only types and shapes are compared.
    """
    tolerances = TOLERANCE | (tolerances or {})
    for i, (x, y) in enumerate(zip(theirs, ours)):
        if x.dtype != y.dtype:
            return f"output {i}: type {y.dtype} for {x.dtype}"
        if x.shape != y.shape:
            return f"output {i}: shape {y.shape} for {x.shape}"
        if i not in undefined and not close(x, y, tolerances):
            return f"output {i}: {apart(x, y, tolerances)}\n  TensorFlow: {summary(x)}\n  Weft: {summary(y)}"
    return None


def apart(x, y, tolerances):
    """Returns a description of the first difference between two arrays."""
    at = tuple(map(int, np.argwhere(~np.asarray(same(x, y, tolerances), bool))[0]))
    return f"{y[at]!r} for {x[at]!r} at {list(at)} of {list(x.shape)}"


def array(proto):
    """Returns the value of a TensorProto.

    On the wire, strings are in tensor_content: all lengths, then all bytes.
    """
    if proto.dtype != types_pb2.DT_STRING or not proto.tensor_content:
        try:
            return tf.make_ndarray(proto)
        except ValueError:  # an empty shape with sizes that exceed NumPy's limits
            return np.array([d.size for d in proto.tensor_shape.dim])
    shape = tuple(d.size for d in proto.tensor_shape.dim)
    content, at, lengths, out = proto.tensor_content, 0, [], []
    for _ in range(int(np.prod(shape))):
        length = shift = 0
        while True:
            byte = content[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        lengths.append(length)
    for length in lengths:
        out.append(content[at : at + length])
        at += length
    return np.array(out, object).reshape(shape)


def close(x, y, tolerances):
    return bool(np.all(same(x, y, tolerances)))


def same(x, y, tolerances):
    """Returns which elements of two arrays are equal within the tolerances."""
    x, y = np.asarray(x), np.asarray(y)
    tolerance = tolerances.get(x.dtype.name)
    if tolerance is None:
        return x == y
    if x.dtype.kind == "c":
        x, y = x.astype(np.complex128), y.astype(np.complex128)
        return near(x.real, y.real, tolerance, x) & near(x.imag, y.imag, tolerance, x)
    x, y = x.astype(np.float64), y.astype(np.float64)
    return near(x, y, tolerance, x)


def near(x, y, tolerance, whole):
    with np.errstate(all="ignore"):
        sizes = np.abs(whole[np.isfinite(whole)])
        scale = max(sizes.max(initial=0), 1e-2)
        return np.where(
            np.isfinite(x),
            np.abs(x - y) <= tolerance * (scale + np.abs(x)),
            (x == y) | np.isnan(x) & np.isnan(y),
        )


def summary(array):
    shown = array.ravel()
    return f"{array.dtype.name}{list(array.shape)} " + np.array2string(
        shown, threshold=24, edgeitems=12, max_line_width=250
    )
