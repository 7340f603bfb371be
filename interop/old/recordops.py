"""Records answers of operations that only old graphs contain, as cases of kernel tests.

    ENVIRONMENT/bin/python interop/old/recordops.py array > internal/kernels/array/testdata/old.txt

It runs in an environment of TensorFlow 0.12 to 1.15. The argument names one of the lists below.
"""

from __future__ import print_function

import sys

import numpy as np
import tensorflow as tf
from tensorflow.python import pywrap_tensorflow as tf_session

# The version of a graph that may contain the operations. Some were removed early.
PRODUCER = 1

# Operations that lack a shape function, with the number of outputs. The Python of old releases
# does not import them.
UNSHAPED = {
    "BatchMatrixBandPart": 1,
    "BatchMatrixDeterminant": 1,
    "BatchMatrixDiag": 1,
    "BatchMatrixDiagPart": 1,
    "BatchMatrixInverse": 1,
    "BatchMatrixSetDiag": 1,
    "BatchMatrixSolve": 1,
    "BatchMatrixSolveLs": 1,
    "BatchMatrixTriangularSolve": 1,
    "BatchSelfAdjointEig": 1,
    "BatchSelfAdjointEigV2": 2,
    "BatchSvd": 3,
    "SelfAdjointEig": 1,
}


def vector(seed, *shape, **kwargs):
    """Returns small numbers with few digits, whose sums are exact."""
    values = np.random.RandomState(seed).randint(-40, 41, shape) / 8.0
    return values.astype(kwargs.get("dtype", np.float32))


def regular(seed, *shape, **kwargs):
    """Returns square matrices with a large diagonal."""
    return vector(seed, *shape, **kwargs) + (8 * np.eye(shape[-1])).astype(
        kwargs.get("dtype", np.float32)
    )


def image(dtype, seed=1, shape=(1, 3, 4, 2)):
    return np.random.RandomState(seed).randint(0, 100, shape).astype(dtype)


def scalar(x, dtype=np.float32):
    return np.array(x, dtype)


def ints(*values, **kwargs):
    return np.array(values, kwargs.get("dtype", np.int32))


def array():
    for dtype in (np.float32, np.int32):
        m = vector(1, 2, 3, 4).astype(dtype)
        for lower, upper in ((1, 0), (0, -1), (-1, 1), (0, 0)):
            bounds = [scalar(lower, np.int64), scalar(upper, np.int64)]
            yield "BatchMatrixBandPart", {"T": dtype}, [m] + bounds, {}
        yield "BatchMatrixDiag", {"T": dtype}, [vector(2, 2, 3).astype(dtype)], {}
        yield "BatchMatrixDiagPart", {"T": dtype}, [m], {}
        yield "BatchMatrixSetDiag", {"T": dtype}, [m, vector(3, 2, 3).astype(dtype)], {}
    for multiples in ((1, 1), (2, 1), (1, 3), (2, 3)):
        for dtype in (np.float32, np.int32, np.complex64):
            m = vector(4, 4, 6).astype(dtype)
            yield "TileGrad", {"T": dtype}, [m, ints(*multiples)], {}
    yield "TileGrad", {"T": np.float32}, [vector(4, 4, 6), ints(2)], {}
    yield "TileGrad", {"T": np.float32}, [vector(5, 2, 2, 4), ints(1, 2, 2)], {}


def imageops():
    numbers = [scalar(1.5), scalar(0), scalar(90)]
    for dtype in (np.uint8, np.int8, np.int16, np.int32, np.float32, np.float64):
        yield "AdjustContrast", {"T": dtype}, [image(dtype)] + numbers, {"tol": 1e-4}
    three = image(np.float32, 2, (3, 2, 3))
    yield "AdjustContrast", {"T": np.float32}, [three] + numbers, {"tol": 1e-4}
    wrong = [scalar(1.5), scalar(4), scalar(4)]
    yield "AdjustContrast", {"T": np.float32}, [three] + wrong, {}
    for seed, size in ((1, (2, 3)), (2, (4, 1)), (3, (5, 6)), (4, (1, 6)), (5, (6, 2)), (6, (0, 1))):
        for dtype in (np.uint8, np.float32):
            attrs = {"T": dtype, "seed": seed, "seed2": 7}
            picture = image(dtype, 3, (5, 6, 2))
            yield "RandomCrop", attrs, [picture, ints(*size, dtype=np.int64)], {}


def linalg():
    close = {"tol": 2e-4}
    for dtype in (np.float32, np.float64):
        a, b = regular(1, 2, 3, 3, dtype=dtype), vector(2, 2, 3, 2, dtype=dtype)
        for adjoint in (False, True):
            attrs = {"T": dtype, "adjoint": adjoint}
            yield "BatchMatrixInverse", attrs, [a], close
            yield "BatchMatrixSolve", attrs, [a, b], close
            attrs = {"T": dtype, "adjoint": adjoint, "lower": not adjoint}
            yield "BatchMatrixTriangularSolve", attrs, [a, b], close
        yield "BatchMatrixDeterminant", {"T": dtype}, [a], close
        tall = vector(4, 2, 4, 3, dtype=dtype)
        right = vector(5, 2, 4, 2, dtype=dtype)
        for fast in (True, False):
            attrs = {"T": dtype, "fast": fast}
            penalty = scalar(0.5 if fast else 0, np.float64)
            yield "BatchMatrixSolveLs", attrs, [tall, right, penalty], {"tol": 2e-3}
        diagonal = np.diag([3, 1, 2]).astype(dtype)
        yield "BatchSelfAdjointEigV2", {"T": dtype, "compute_v": True}, [diagonal], close
        yield "BatchSvd", {"T": dtype, "compute_uv": True}, [diagonal], close
        yield "SelfAdjointEig", {"T": dtype}, [diagonal], close
        yield "BatchSelfAdjointEig", {"T": dtype}, [np.stack([diagonal, -diagonal])], close


def exponential():
    for dtype in (np.float32, np.float64, np.complex64, np.complex128):
        for size in (0.25, 1, 16):
            m = vector(6, 2, 3, 3).astype(dtype) / 4 * size
            if np.iscomplexobj(m):
                m = m * (0.5 + 0.5j)
            tol = 1e-4 if dtype in (np.float32, np.complex64) else 1e-10
            yield "MatrixExponential", {"T": dtype}, [m.astype(dtype)], {"tol": tol}
    yield "MatrixExponential", {"T": np.float64}, [np.zeros((2, 2))], {}


def strings(*rows):
    return np.array(rows, object)


def crosses():
    from tensorflow.contrib.layers.ops import gen_sparse_feature_cross_op  # noqa: F401

    at, shape = ints([0, 0], [0, 1], [1, 0], dtype=np.int64), ints(2, 2, dtype=np.int64)
    words, pairs = strings("b", "a", "c"), strings(["x", "y"], ["z", "w"])
    few, small = ints([0, 0], [1, 0], dtype=np.int64), ints(2, 1, dtype=np.int64)
    numbers, column = ints(7, -3, dtype=np.int64), ints([5], [6], dtype=np.int64)
    i, t = np.int64, object
    for sparse, dense, inputs in (
        ([t], [t], [at, words, shape, pairs]),
        ([i, t], [], [few, at, numbers, words, small, shape]),
        ([i], [i, t], [few, numbers, small, column, pairs]),
        ([], [i], [column]),
    ):
        attrs = {"N": len(sparse), "sparse_types": sparse, "dense_types": dense}
        attrs["internal_type"] = i if i in sparse + dense else t
        for hashed, buckets in ((False, 0), (True, 0), (True, 100)):
            attrs.update(hashed_output=hashed, num_buckets=buckets, out_type=i if hashed else t)
            yield "SparseFeatureCross", dict(attrs), inputs, {}
            yield "SparseFeatureCrossV2", dict(attrs, hash_key=0xDECAFCAFFE), inputs, {}


def gathertree():
    from tensorflow.contrib.seq2seq.python.ops import beam_search_ops  # noqa: F401

    step = [[[1, 2, 3], [4, 5, 6]], [[4, 5, 6], [7, 8, 9]], [[7, 8, 9], [1, 2, 3]]]
    step = ints(*(step + [[[11, 12, 13], [3, 2, 10]]]))
    parent = [[[0, 0, 0], [0, 1, 2]], [[0, 2, 1], [1, 0, 2]], [[2, 1, 2], [0, 0, 1]]]
    parent = ints(*(parent + [[[0, 1, 1], [2, 1, 1]]]))
    attrs = {"T": np.int32}
    for lengths, end in (((3, 4), 10), ((2, 4), 10), ((5, 3), 10), ((0, 1), 10), ((4, 4), 7)):
        yield "GatherTree", attrs, [step, parent, ints(*lengths), scalar(end, np.int32)], {}
    for change in (-1, 4):
        for lengths in ((4, 4), (1, 2)):
            inputs = [step, parent + change, ints(*lengths), scalar(10, np.int32)]
            yield "GatherTree", attrs, inputs, {}


def projective():
    from tensorflow.contrib.image.ops import gen_image_ops  # noqa: F401

    for dtype in (np.uint8, np.int32, np.int64, np.float32, np.float64):
        pictures = image(dtype, 1, (2, 3, 4, 2))
        for kind in ("NEAREST", "BILINEAR"):
            for transforms in (
                [[1, 0, 1, 0, 1, 0, 0, 0]],
                [[1, 0, 0.4, 0, 1, -0.25, 0, 0], [0.8, 0.2, 0, -0.1, 1.1, 0.3, 0.05, 0.02]],
            ):
                inputs = [pictures, np.array(transforms, np.float32)]
                options = {"tol": 1e-3} if dtype in (np.float32, np.float64) else {}
                attrs = {"dtype": dtype, "interpolation": kind}
                yield "ImageProjectiveTransform", attrs, inputs, options


def type_name(dtype):
    if dtype == object:
        return "string"
    return tf.as_dtype(dtype).name.replace("float32", "float").replace("float64", "double")


def text(x):
    if isinstance(x, np.ndarray):
        values = " ".join(text(v) for v in x.ravel())
        shape = ",".join(map(str, x.shape))
        return ("%s [%s] %s" % (type_name(x.dtype), shape, values)).strip()
    if isinstance(x, list):
        return "[%s]" % ",".join(text(v) for v in x)
    if isinstance(x, (bytes, str)):
        return '"%s"' % (x if isinstance(x, str) else x.decode())
    if isinstance(x, (bool, np.bool_)):
        return str(x).lower()
    if isinstance(x, type):
        return type_name(x)
    if np.iscomplexobj(x):
        return "%s%s%si" % (text(x.real), "" if text(x.imag)[0] == "-" else "+", text(x.imag))
    if isinstance(x, (float, np.floating)):
        return np.format_float_positional(x, trim="-") if x == x else "nan"
    return str(x)


def enum(dtype):
    return tf.as_dtype(object if dtype == np.object_ else dtype).as_datatype_enum


def node(graph, name, op, attrs, inputs):
    n = graph.node.add(name=name, op=op)
    n.input.extend(inputs)
    for key, value in attrs.items():
        if isinstance(value, bool):
            n.attr[key].b = value
        elif isinstance(value, int):
            n.attr[key].i = value
        elif isinstance(value, str):
            n.attr[key].s = value.encode()
        elif isinstance(value, list):
            n.attr[key].list.type.extend(enum(v) for v in value)
        elif isinstance(value, np.ndarray):
            n.attr[key].tensor.CopyFrom(tf.contrib.util.make_tensor_proto(value))
        else:
            n.attr[key].type = enum(value)


def run(op, attrs, inputs):
    """Returns the outputs of an operation."""
    graph = tf.GraphDef()
    graph.versions.producer = PRODUCER
    for i, value in enumerate(inputs):
        node(graph, "in%d" % i, "Const", {"dtype": value.dtype.type, "value": value}, [])
    node(graph, "op", op, attrs, ["in%d" % i for i in range(len(inputs))])
    if op not in UNSHAPED:
        with tf.Graph().as_default() as g, tf.Session(graph=g) as sess:
            tf.import_graph_def(graph, name="")
            return sess.run(list(g.get_operation_by_name("op").outputs))
    with tf.Session(graph=tf.Graph()) as sess:
        with tf.errors.raise_exception_on_not_ok_status() as status:
            tf_session.TF_ExtendGraph(sess._session, graph.SerializeToString(), status)
        fetches = ["op:%d" % i for i in range(UNSHAPED[op])]
        with tf.errors.raise_exception_on_not_ok_status() as status:
            return tf_session.TF_Run(sess._session, None, {}, fetches, [], status, None)


def main():
    print("# Recorded from TensorFlow %s on CPU by interop/old/recordops.py." % tf.VERSION)
    for op, attrs, inputs, options in globals()[sys.argv[1]]():
        words = ["%s=%s" % (k, text(v).replace('"', "'")) for k, v in sorted(attrs.items())]
        print("\ncase %s %s" % (op, " ".join(words)))
        for value in inputs:
            print("in", text(value))
        if "tol" in options:
            print("tol", options["tol"])
        try:
            for value in run(op, attrs, inputs):
                print("out", text(np.asarray(value)))
        except (tf.errors.OpError, ValueError) as e:
            code = getattr(e, "error_code", tf.errors.INVALID_ARGUMENT)
            name = [k for k in dir(tf.errors) if getattr(tf.errors, k) == code and k.isupper()][0]
            message = getattr(e, "message", str(e)).split("\n")[0]
            print('error %s "%s"' % (name, message))


if __name__ == "__main__":
    main()
