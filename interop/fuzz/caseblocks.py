"""Cases in the text format of package kerneltest, for the testdata of kernels."""

import numpy as np
from tensorflow.core.framework import types_pb2

NAMES = {"FLOAT": "float", "DOUBLE": "double", "HALF": "half"}


def block(case, outcome, results):
    """Returns a case and its outcome as a block of text."""
    lines = [
        " ".join(
            [
                "case",
                case.op,
                *(f"{name}={attribute(value)}" for name, value in sorted(case.attrs.items())),
            ]
        )
    ]
    lines += ["in " + array(a) for a in case.inputs]
    if outcome == "ok":
        lines += ["out " + array(a) for a in results]
    else:
        lines.append(f"error {outcome}")
    return "\n".join(lines) + "\n"


def attribute(value):
    kind = value.WhichOneof("value")
    if kind == "type":
        return dtype(types_pb2.DataType.Name(value.type).removeprefix("DT_"))
    if kind == "s":
        return quoted(value.s)
    if kind == "b":
        return str(value.b).lower()
    if kind == "list":
        types = [dtype(types_pb2.DataType.Name(t).removeprefix("DT_")) for t in value.list.type]
        rest = [*value.list.i, *map(number, value.list.f), *map(quoted, value.list.s)]
        return "[" + ",".join(str(v) for v in types + rest) + "]"
    if kind == "shape":
        return "[" + ",".join(str(d.size) for d in value.shape.dim) + "]"
    return str(value.i) if kind == "i" else number(value.f)


def dtype(name):
    return NAMES.get(name, name.lower())


def quoted(text):
    return (
        '"'
        + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\x{b:02x}" for b in text)
        + '"'
    )


def number(value):
    return "nan" if np.isnan(value) else repr(float(value)).removesuffix(".0")


def array(a):
    a = np.asarray(a)
    if a.dtype == object:
        name, values = "string", [quoted(v) for v in a.ravel()]
    elif a.dtype.kind == "c":
        name, values = (
            a.dtype.name,
            [
                f"{number(v.real)}{'' if str(v.imag)[0] in '-n' else '+'}{number(v.imag)}i"
                for v in a.ravel()
            ],
        )
    elif a.dtype == bool:
        name, values = "bool", [str(bool(v)).lower() for v in a.ravel()]
    elif a.dtype.kind in "iu":
        name, values = a.dtype.name, [str(v) for v in a.ravel()]
    else:
        name = {"float32": "float", "float64": "double", "float16": "half"}.get(
            a.dtype.name, a.dtype.name
        )
        digits = 17 if a.dtype == np.float64 else 9
        values = [f"{float(v):.{digits}g}" for v in a.ravel()]
    return " ".join([name, str(list(a.shape)).replace(" ", ""), *values])
