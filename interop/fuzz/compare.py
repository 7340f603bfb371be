"""When two results are the same."""
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import types_pb2

# How far results may be apart, for the largest element of a result: sums are made in other orders, and functions are
# approximated by other polynomials.
TOLERANCE = {"float32": 2e-5, "complex64": 5e-5, "float64": 1e-10, "complex128": 1e-10, "float16": 5e-3, "bfloat16": 3e-2}


def difference(theirs, ours, undefined=(), tolerances=None):
    """Says how two lists of arrays differ, or returns None. Of undefined outputs only types and shapes are compared."""
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
    """Says where two arrays that are not the same differ most clearly."""
    for at in np.ndindex(x.shape):
        if not close(x[at], y[at], tolerances):
            return f"{y[at]!r} for {x[at]!r} at {list(at)} of {list(x.shape)}"
    return "no element by itself"


def array(proto):
    """The value of a TensorProto. On the wire strings are in tensor_content: all lengths, then all bytes."""
    if proto.dtype != types_pb2.DT_STRING or not proto.tensor_content:
        try:
            return tf.make_ndarray(proto)
        except ValueError:  # a shape without elements whose other sizes are beyond NumPy's
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
        out.append(content[at:at + length])
        at += length
    return np.array(out, object).reshape(shape)


def close(x, y, tolerances):
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype == object or x.dtype.kind in "biu":
        return bool(np.all(x == y))
    tolerance = tolerances.get(x.dtype.name)
    if tolerance is None:
        return bool(np.all(x == y))
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    x, y = x.astype(wide), y.astype(wide)
    if wide is np.complex128:
        return close_to(x.real, y.real, tolerance, x) and close_to(x.imag, y.imag, tolerance, x)
    return close_to(x, y, tolerance, x)


def close_to(x, y, tolerance, whole):
    with np.errstate(all="ignore"):
        finite = np.isfinite(x)
        if not np.array_equal(x[~finite], y[~finite], equal_nan=True):
            return False
        sizes = np.abs(whole[np.isfinite(whole)])
        scale = max(sizes.max(initial=0), 1e-2)
        return bool(np.all(np.abs(x[finite] - y[finite]) <= tolerance * (scale + np.abs(x[finite]))))


def summary(array):
    shown = array.ravel()
    return f"{array.dtype.name}{list(array.shape)} " + np.array2string(shown, threshold=24, edgeitems=12, max_line_width=250)
