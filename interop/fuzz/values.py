"""Random shapes and values that operations are likely to accept."""

import re
import warnings

import numpy as np
import tensorflow as tf

WORDS = [
    b"",
    b"a",
    b"abc",
    b"weft",
    b"12",
    b"-3.5",
    b"1e3",
    b"a b c",
    b"/x/y.txt",
    b"\xff\x00",
    "\u65e5\u672c".encode(),
    b"%d",
    b"true",
]
EXTREMES = [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e-30, 1e-40, 1.5, -0.5]

# Names of integer inputs that restrict their values.
AXES = (
    "axis",
    "axes",
    "dim",
    "dimension",
    "reduction_indices",
    "perm",
    "concat_dim",
    "split_dim",
    "dims",
)
SIZES = (
    "shape",
    "size",
    "sizes",
    "multiples",
    "output_shape",
    "input_sizes",
    "filter_sizes",
    "out_backprop_sizes",
    "dense_shape",
    "new_shape",
    "num",
    "k",
    "depth",
    "num_segments",
    "ksize",
    "strides",
    "block_shape",
    "out_shape",
    "output_size",
    "lengths",
)

# Names of inputs that are vectors regardless of other inputs.
VECTORS = r"^(transformations|optimizations(_.*)?|row_shape|lengths)$"

# Names of scalar inputs, and of the limits of quantized ranges.
SCALARS = (
    r"^(count|index|buffer_size|batch_size|drop_remainder|num_(workers|shards|replicas|threads|elements|parallel_.*|quantized_bins)|max_num_elements"
    r"|size|shift|stride|start|stop|step|seed2?|seed_generator|algorithm|alg|delta|tag|cardinality|rate|sample_rate|n|minval|maxval|threshold|timeout_ms"
    r"|max_intra_op_parallelism|reshuffle|lr|alpha|beta[12]?(_power)?|epsilon|rho|momentum|l1|l2|l2_shrinkage|lr_power|.*power.*|limit)$"
)
LOWEST, HIGHEST = r"(^|_)(min|mins|minimum)($|_)", r"(^|_)(max|maxes|maximum)($|_)"


def shape(rng, rank):
    """Returns a random shape. Dimensions are small and sometimes 0."""
    return tuple(
        int(rng.choice([0, 1, 2, 3, 4, 5, 7], p=[0.04, 0.2, 0.25, 0.2, 0.16, 0.1, 0.05]))
        for _ in range(rank)
    )


LARGE = [
    (17,),
    (65,),
    (1030,),
    (5003,),
    (33, 40),
    (3, 700),
    (300, 5),
    (2, 33, 17),
    (2, 16, 16, 3),
    (1, 9, 33, 20),
]


def base(rng):
    """Returns a base shape for a case, sometimes large enough for vector code and threads."""
    if rng.random() < 0.05:
        return LARGE[int(rng.integers(len(LARGE)))]
    return shape(rng, int(rng.choice([0, 1, 2, 3, 4, 5], p=[0.1, 0.2, 0.25, 0.15, 0.25, 0.05])))


def near(rng, base):
    """Returns a shape related to the base: the same, one that broadcasts to it, or another."""
    kind = rng.random()
    if kind < 0.5:
        return base
    if kind < 0.6:
        return tuple(1 if rng.random() < 0.4 else d for d in base)
    if kind < 0.7:
        return base[int(rng.integers(0, len(base) + 1)) :]
    if kind < 0.8:
        return ()
    if kind < 0.9:
        return (len(base),) if rng.random() < 0.5 else shape(rng, 1)
    return shape(rng, int(rng.integers(0, 5)))


def numbers(rng, dtype, shape_, extremes=True):
    """Returns values of an unrestricted input.

    With extremes, some are infinite, NaN, very large or very small.
    """
    if dtype == tf.string:
        return np.array(
            [WORDS[i] for i in rng.integers(0, len(WORDS), int(np.prod(shape_)))], object
        ).reshape(shape_)
    kind = dtype.as_numpy_dtype
    if dtype == tf.bool:
        return rng.random(shape_) < 0.5
    if dtype.is_integer:
        low = 0 if dtype.is_unsigned else -3
        out = np.asarray(rng.integers(low, 9, shape_)).astype(kind)
        if rng.random() < 0.05:
            info = np.iinfo(kind)
            out = np.where(
                rng.random(shape_) < 0.3,
                rng.choice(np.array([info.min, info.max], kind), size=shape_),
                out,
            )
        return np.asarray(out).astype(kind)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some do not fit the type
        out = reals(rng, shape_, extremes)
        if dtype.is_complex:  # a product would produce more NaN
            out = np.asarray(out).astype(np.complex128)
            out.imag = reals(rng, shape_, extremes)
        return np.asarray(out).astype(kind)


def reals(rng, shape_, extremes):
    out = rng.standard_normal(shape_) * rng.choice([0.5, 1, 3])
    if extremes and rng.random() < 0.08:
        out = np.where(rng.random(shape_) < 0.3, rng.choice(EXTREMES, size=shape_), out)
    return out


def damaged(rng, value):
    """Returns bytes with a small change: truncated, or one byte changed or inserted."""
    at, kind = int(rng.integers(len(value) + 1)), rng.random()
    byte = bytes([int(rng.integers(256))])
    if kind < 0.3:
        return value[:at]
    return value[:at] + byte + value[at + (kind < 0.8) :]


def integers(rng, name, dtype, base):
    """Returns values of an integer input whose name restricts them, or None."""
    kind, rank = dtype.as_numpy_dtype, len(base)
    if name in AXES:
        if rng.random() < 0.5:
            return np.asarray(rng.integers(-rank, max(rank, 1)), kind)
        count = int(rng.integers(0, rank + 1))
        return np.array(
            rng.permutation(rank)[:count] if name != "perm" else rng.permutation(rank), kind
        )
    if name in SIZES:
        if rng.random() < 0.3:
            return np.asarray(rng.integers(0, 6), kind)
        if rng.random() < 0.4:
            return np.array(base, kind)
        return np.array(
            rng.integers(1, 6, rank if rng.random() < 0.7 else int(rng.integers(0, 5))), kind
        )
    if (
        name in ("begin", "start", "end", "offset", "paddings", "crops")
        or "indices" in name
        or name.endswith("ids")
    ):
        shape_ = {
            "paddings": (rank, 2),
            "crops": (max(rank - 2, 0), 2),
            "begin": (rank,),
            "end": (rank,),
        }.get(name) or near(rng, base)
        out = rng.integers(-1 if rng.random() < 0.1 else 0, 4, shape_)
        if name.endswith("ids") and rng.random() < 0.8:
            out = np.sort(out, axis=None).reshape(shape_)
        return np.asarray(out).astype(kind)
    return None


def of(rng, name, dtype, base, extremes):
    if name == "filename":
        return np.array(b"", object)  # in memory instead of a file
    if name in ("seed", "seed2") and dtype.is_integer and rng.random() < 0.8:
        return np.asarray(rng.integers(1, 99), dtype.as_numpy_dtype)
    if name in ("algorithm", "alg") and rng.random() < 0.9:
        return np.asarray(rng.integers(1, 3), dtype.as_numpy_dtype)
    if re.search(VECTORS, name):
        base = shape(rng, 1)
        return numbers(rng, dtype, base, extremes)
    if name == "element_shape" and rng.random() < 0.8:
        return np.asarray(-1 if rng.random() < 0.6 else [-1] * len(base[1:]), dtype.as_numpy_dtype)
    if dtype in (tf.int32, tf.int64) and rng.random() < 0.9:
        found = integers(rng, name, dtype, base)
        if found is not None:
            return found
    return numbers(rng, dtype, near(rng, base), extremes)


def scalar(rng, name, dtype):
    """Returns the value of an input that is a scalar according to its name, or None."""
    if dtype == tf.float32 and re.search(LOWEST, name):
        return np.float32(-rng.random() * 4)
    if dtype == tf.float32 and re.search(HIGHEST, name):
        return np.float32(rng.random() * 4)
    if re.search(SCALARS, name):
        return (
            np.asarray(rng.integers(0, 5), dtype.as_numpy_dtype)
            if dtype.is_integer and rng.random() < 0.8
            else numbers(rng, dtype, ())
        )
    return None
