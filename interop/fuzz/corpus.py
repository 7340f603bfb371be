"""The cases in the testdata of kernels, from which the fuzzer starts."""

import collections
import re

import numpy as np
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.framework import op_def_registry

from interop import cluster

MAX_LENGTH = 8000  # characters of a case; many small cases find more than a few large ones

_ATTRIBUTE = re.compile(r"""(\w+)=("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\[.*?\](?=\s|$)|\S+)""")
_STRING = re.compile(r"""("(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')""")
_TYPES = {"float": "float32", "double": "float64", "half": "float16", "string": "object"}


def read():
    """Returns the texts of cases, by operation."""
    out = collections.defaultdict(list)
    for file in sorted(cluster.ROOT.glob("internal/kernels/*/testdata/*.txt")):
        for block in re.split(r"\n(?=case |shapes |gradient )", file.read_text()):
            if (
                block.startswith("case ")
                and len(block) < MAX_LENGTH
                and not re.search(r"^error ", block, re.M)
            ):
                out[block.split(None, 2)[1]].append(block)
    return out


def parse(block):
    """Returns the attributes and inputs of a case. Raises ValueError for unsupported ones."""
    lines = block.splitlines()
    op, rest = (lines[0].split(None, 2)[1:] + [""])[:2]
    given = dict(_ATTRIBUTE.findall(rest))
    attrs = {}
    for attr in op_def_registry.get(op).attr:
        value = attr_value_pb2.AttrValue()
        if attr.name in given:
            fill(value, attr.type, given[attr.name])
        elif attr.HasField("default_value"):
            value.CopyFrom(attr.default_value)
        else:
            raise ValueError(f"missing attribute {attr.name}")
        attrs[attr.name] = value
    return attrs, [
        array(line.split(None, 1)[1]) for line in lines if line.startswith(("var ", "in "))
    ]  # variables come first


def fill(value, kind, text):
    if kind == "type":
        value.type = data_type(text)
    elif kind == "int":
        value.i = int(text)
    elif kind == "float":
        value.f = float(text)
    elif kind == "bool":
        value.b = text == "true"
    elif kind == "string":
        value.s = unquoted(text)
    elif kind == "shape":
        fill_shape(value.shape, text)
    elif kind == "list(shape)":
        for item in re.findall(r"\[[^\[\]]*\]|\?|<unknown>", text[1:-1]):
            fill_shape(value.list.shape.add(), item)
        value.list.SetInParent()
    elif kind.startswith("list("):
        items = (
            _STRING.findall(text)
            if kind == "list(string)"
            else [i for i in re.split(r"[,\s]+", text.strip("[]")) if i]
        )
        field, convert = {
            "list(type)": ("type", data_type),
            "list(int)": ("i", int),
            "list(float)": ("f", float),
            "list(bool)": ("b", "true".__eq__),
            "list(string)": ("s", unquoted),
        }.get(kind, (None, None))
        if field is None:
            raise ValueError(kind)
        getattr(value.list, field).extend(convert(i) for i in items)
        value.list.SetInParent()
    else:
        raise ValueError(kind)


def fill_shape(shape, text):
    shape.SetInParent()
    if text in ("?", "<unknown>"):
        shape.unknown_rank = True
        return
    for d in text.strip("[]").split(","):
        if d:
            shape.dim.add(size=-1 if d == "?" else int(d))


def data_type(name):
    return types_pb2.DataType.Value("DT_" + name.upper())


def unquoted(text):
    if len(text) < 2 or text[0] not in "\"'":
        return text.encode()
    out, body = bytearray(), text[1:-1]
    for match in re.finditer(r"\\x(..)|\\u(....)|\\(.)|([^\\])", body, re.S):
        byte, rune, escape, plain = match.groups()
        if byte:
            out.append(int(byte, 16))
        elif rune:
            out += chr(int(rune, 16)).encode()
        elif escape:
            out += {
                "n": b"\n",
                "t": b"\t",
                "r": b"\r",
                "a": b"\a",
                "b": b"\b",
                "f": b"\f",
                "v": b"\v",
            }.get(escape, escape.encode())
        else:
            out += plain.encode()
    return bytes(out)


def array(text):
    """Parses a tensor: its type, its shape and its elements."""
    name, shape, values = (text.split(None, 2) + [""])[:3]
    dtype = np.dtype(_TYPES.get(name, name))
    shape = tuple(int(d) for d in shape.strip("[]").split(",") if d)
    if dtype == object:
        items = [unquoted(s) for s in _STRING.findall(values)]
        out = np.empty(len(items), object)
        out[:] = items
    elif dtype == bool:
        out = np.array([v == "true" for v in values.split()], bool)
    elif dtype.kind == "c":
        out = np.array(
            [complex(v[:-1] + "j") if v.endswith("i") else complex(v) for v in values.split()],
            dtype,
        )
    elif dtype.kind in "iu":
        out = np.array([int(v) for v in values.split()], dtype)
    else:
        out = np.array([float(v) for v in values.split()], np.float64).astype(dtype)
    return out.reshape(shape)
