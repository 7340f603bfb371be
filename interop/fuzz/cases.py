"""Random cases: operations with random attributes and inputs, based on their definitions."""

import collections
import dataclasses
import functools
import re
import warnings
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, types_pb2
from tensorflow.python.framework import kernels, op_def_registry

from interop.fuzz import allowed, compare, corpus, kinds, values

TYPES = [
    types_pb2.DataType.Value("DT_" + name)
    for name in "FLOAT DOUBLE INT32 INT64 UINT8 INT8 INT16 UINT16 UINT32 UINT64 HALF BFLOAT16 BOOL COMPLEX64 COMPLEX128 STRING".split()
]
PLAIN = [*TYPES, *kinds.QUANTIZED]
MAX_INPUTS = 12


@dataclasses.dataclass
class Case:
    """One node, its attributes and its inputs."""

    op: str
    attrs: dict  # AttrValue messages, by name
    names: list  # name of the input argument of each array
    inputs: list  # arrays
    constant: bool  # inputs are Const nodes, so shapes depend on values and the node can be folded

    def given(self, name):
        """Returns the input with a name."""
        return self.inputs[self.names.index(name)]

    @functools.cached_property
    def graph(self):
        """Returns the graph with the node, and the names of the fetches."""
        definition = op_def_registry.get(self.op)
        arrays, sources, again = iter(self.inputs), [], []
        g = kinds.Graph(self.constant)
        for arg in slots(definition, self.attrs):
            own = [next(arrays) for _ in arg.types]
            if arg.kind is None:
                sources.append(g.array(own[0]))
                continue
            kind = kinds.KINDS[arg.kind]
            sources.append(kind.make(g, own, self.attrs))
            if kind.after:
                again.append((kind, sources[-1], [kinds.type_of(a) for a in own]))
        node = g.add(self.op, sources + ["^" + n for n in g.before], "n", **self.attrs)
        fetches, at = [], 0
        for arg in definition.output_arg:
            for dtype in dtypes(arg, self.attrs):
                fetches += self.read(g, arg, dtype, f"{node}:{at}")
                at += 1
        if again or not fetches:
            fetches += [
                f"{g.add('Identity', [g.const(0, types_pb2.DT_INT32), '^' + node], T=types_pb2.DT_INT32)}:0"
            ]
        for kind, source, types in again:
            first = len(g.proto.node)
            fetches += kind.after(g, source, types)
            g.proto.node[first].input.append("^" + node)
        return g, fetches

    def read(self, g, arg, dtype, output):
        """Returns the fetches for an output."""
        if arg.is_ref:
            return [output]
        try:
            kind = kinds.kind_of(self.op, arg, dtype)
        except KeyError:
            return []  # only the creation is tested
        if kind is None:
            return [output]
        if kinds.KINDS[kind].read is None:
            return []
        types = kinds.KINDS[kind].types(self.attrs)
        return kinds.KINDS[kind].read(g, output, types)

    def nodes(self):
        return self.graph[0].proto

    def feeds(self):
        """Returns the fed arrays, by name."""
        return self.graph[0].feeds

    def fetches(self):
        return self.graph[1]

    def __str__(self):
        attrs = " ".join(f"{k}={' '.join(str(v).split())}" for k, v in sorted(self.attrs.items()))
        inputs = "".join(
            f"\n    {n}: {compare.summary(a)}" for n, a in zip(self.names, self.inputs)
        )
        return f"{self.op} {attrs}{' (constants)' if self.constant else ''}{inputs}"


def tensor(array):
    return tf.make_tensor_proto(array, shape=array.shape)


@functools.cache
def cpu_kernels(op):
    return [
        k
        for k in kernels.get_registered_kernels_for_op(op).kernel
        if k.device_type in ("CPU", "DEFAULT")
    ]


class Unsuitable(Exception):
    """The fuzzer does not support an operation or a choice of attributes."""


# Operations with many scalar inputs.
SCALARS = r"Dataset|Quantize|Requant|Dequant|TensorList|^Stateful|^Rng|^TensorArray|^GetElement|Summary|Seed|^Resource|^Apply|^SparseApply|CSR"
WORDS = {  # usual values of attributes
    "metadata": [b""],
    "container": [b""],
    "shared_name": [b""],
    "deterministic": [b"default", b"true", b"false"],
    "padding": [b"SAME", b"VALID"],
    "mode": [b"MIN_COMBINED", b"MIN_FIRST", b"SCALED"],
    "type": [b"LU"],
    "dct_method": [b"", b"INTEGER_FAST", b"INTEGER_ACCURATE"],
}
KEYED = {
    name: [types_pb2.DT_INT64, types_pb2.DT_STRING] for name in ("Tin", "Tkeys", "key_dtype")
}  # the most common types in tables
POSITIVE = ("epsilon", "variance_epsilon")  # 0 would divide tiny numbers by tiny numbers
MESSAGES = r"^Parse|Proto|Deserialize|^MergeSummary$|^TensorSummaryV2$|^DatasetFromGraph$"  # operations on encoded messages, which get malformed ones
KEPT = 24  # cases per operation that are mutated


class Generator:
    """A generator of random cases.

    It starts from recorded cases, keeps cases that succeed, and mutates these. The cases of an
    operation depend on the seed and on its earlier outcomes, not on other operations.
    """

    def __init__(self, seed):
        self.start = seed
        self.recorded = corpus.read()
        self.worked = {}  # by operation
        self.made = collections.Counter()  # by operation

    def remember(self, case):
        kept = self.worked[case.op]
        if len(kept) < KEPT:
            kept.append(case)
        else:
            kept[self.made[case.op] % KEPT] = case

    def case(self, op):
        self.rng = np.random.default_rng([self.start, zlib.crc32(op.encode()), self.made[op]])
        self.made[op] += 1
        definition = op_def_registry.get(op)
        if op not in self.worked:
            self.worked[op] = self.known(definition)
        kept = self.worked[op]
        if kept and self.rng.random() < 0.7:
            return self.changed(kept[int(self.rng.integers(len(kept)))])
        attrs = self.attributes(definition)
        base = values.base(self.rng)
        names, inputs = [], []
        for arg in slots(definition, attrs):
            if arg.kind is None:
                inputs.append(self.plain(op, arg, base))
            else:
                inputs += kinds.KINDS[arg.kind].draw(self.rng, arg.types, base)
            names += [arg.name] * len(arg.types)
        if len(inputs) > MAX_INPUTS:
            raise Unsuitable
        out = Case(op, attrs, names, inputs, self.rng.random() < 0.3)
        out.graph  # raises Unsuitable if impossible
        return out

    def plain(self, op, arg, base):
        """Returns a random tensor input."""
        dtype = tf.as_dtype(arg.types[0])
        if self.rng.random() < 0.85 and re.search(SCALARS, op):
            value = values.scalar(self.rng, arg.name, dtype)
            if value is not None:
                return value
        return values.of(
            self.rng, arg.name, dtype, () if "Dataset" in op else base, not allowed.ordinary(op)
        )

    def known(self, definition):
        """Returns the recorded cases of an operation."""
        texts, out = self.recorded[definition.name], []
        for i in self.rng.permutation(len(texts))[:KEPT]:
            try:
                attrs, inputs = corpus.parse(texts[i])
                names = [arg.name for arg in slots(definition, attrs) for _ in arg.types]
                if len(names) != len(inputs):
                    continue
                self.seed(attrs)
                case = Case(definition.name, attrs, names, inputs, False)
                case.graph
            except (ValueError, TypeError, Unsuitable):  # an unsupported type
                continue
            out.append(case)
        return out

    def seed(self, attrs):
        for name in attrs.keys() & {"seed", "seed2"}:
            attrs[name].i = int(self.rng.integers(1, 100))  # 0 means a random seed

    def changed(self, case):
        """Returns a mutation: another input or attribute, or another numeric type."""
        if self.rng.random() < 0.15:
            return self.converted(case)
        out = dataclasses.replace(
            case, attrs=dict(case.attrs), inputs=list(case.inputs), constant=self.rng.random() < 0.3
        )
        definition = op_def_registry.get(case.op)
        free = [
            a
            for a in definition.attr
            if a.type in ("int", "float", "bool", "string", "list(int)")
            and not is_number(definition, a.name)
            and a.name not in ("seed", "seed2")
        ]
        if free and self.rng.random() < 0.3:
            attr = free[int(self.rng.integers(len(free)))]
            out.attrs[attr.name] = self.attribute(attr)
        elif out.inputs:
            i = int(self.rng.integers(len(out.inputs)))
            old = out.inputs[i]
            dtype = tf.as_dtype(old.dtype) if old.dtype != object else tf.string
            extremes = not allowed.ordinary(case.op)
            if (
                old.dtype == object
                and old.size
                and re.search(MESSAGES, case.op)
                and self.rng.random() < 0.7
            ):
                out.inputs[i] = np.array(
                    [values.damaged(self.rng, v) for v in old.ravel()], object
                ).reshape(old.shape)
            elif (
                self.rng.random() < 0.6 and case.names[i] != "filename"
            ):  # keep the names of files that other cases wrote
                out.inputs[i] = values.numbers(self.rng, dtype, old.shape, extremes)
            else:
                out.inputs[i] = values.of(self.rng, case.names[i], dtype, old.shape, extremes)
        return out

    def converted(self, case):
        """Returns the case with the types of another kernel."""
        definition, attrs = op_def_registry.get(case.op), dict(case.attrs)
        single = [attr.name for attr in definition.attr if attr.type == "type"]
        usable = cpu_kernels(case.op)
        if not usable:
            raise Unsuitable
        for constraint in usable[int(self.rng.integers(len(usable)))].constraint:
            choices = [
                t
                for t in constraint.allowed_values.list.type
                if t in TYPES and t != types_pb2.DT_STRING
            ]
            if constraint.name in single and choices:
                attrs[constraint.name] = attr_value_pb2.AttrValue(
                    type=int(self.rng.choice(choices))
                )
        types = [t for arg in slots(definition, attrs) for t in arg.types]
        if len(types) != len(case.inputs):
            raise Unsuitable
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # lossy conversions are fine
            inputs = [
                a if a.dtype == object else a.astype(tf.as_dtype(t).as_numpy_dtype)
                for a, t in zip(case.inputs, types)
            ]
        return dataclasses.replace(
            case, attrs=attrs, inputs=inputs, constant=self.rng.random() < 0.3
        )

    def attributes(self, definition):
        attrs = {}
        for attr in definition.attr:
            attrs[attr.name] = self.attribute(attr)
        self.seed(attrs)
        matched(attrs, self.rng.random() < 0.1)
        usable = cpu_kernels(definition.name)
        if not usable:
            raise Unsuitable
        kernel = usable[int(self.rng.integers(len(usable)))]
        for constraint in kernel.constraint:
            choices = [t for t in constraint.allowed_values.list.type if t in PLAIN]
            if not choices or constraint.name not in attrs:
                raise Unsuitable
            value = attrs[constraint.name]
            if value.WhichOneof("value") == "list":
                for i in range(len(value.list.type)):
                    value.list.type[i] = int(self.rng.choice(choices))
            else:
                value.type = int(self.rng.choice(choices))
        return attrs

    def attribute(self, attr):
        """Returns a random value of an attribute."""
        rng = self.rng
        value = attr_value_pb2.AttrValue()
        allowed = attr.allowed_values.list
        chance = rng.random()
        if attr.type == "type":
            choices = [t for t in allowed.type if t in PLAIN] or TYPES
            if allowed.type and not any(t in PLAIN for t in allowed.type):
                raise Unsuitable
            if attr.name in KEYED:
                choices = KEYED[attr.name]
            value.type = int(rng.choice(choices))
        elif attr.type == "list(shape)":  # one per type; set by matched
            value.list.SetInParent()
        elif attr.type == "list(type)":
            choices = [t for t in allowed.type if t in TYPES] or TYPES
            count = attr.minimum + int(rng.choice(3, p=[0.5, 0.25, 0.25]))
            if not allowed.type and rng.random() < 0.3:
                choices = [types_pb2.DT_INT64]
            value.list.type.extend(int(t) for t in rng.choice(choices, count))
            value.list.SetInParent()
        elif attr.HasField("default_value") and chance < 0.5:
            value.CopyFrom(attr.default_value)
        elif attr.type == "int":
            low = attr.minimum if attr.has_minimum else (-1 if chance > 0.9 else 0)
            value.i = int(low + rng.integers(0, 4))
        elif attr.type == "float":
            low = 1 if attr.name in POSITIVE else -1
            value.f = float(
                rng.choice([v for v in (0, 1, 0.5, -1, 1e-3, 2, 10) if v > 0 or low < 0])
            )
        elif attr.type == "bool":
            value.b = bool(rng.random() < 0.5)
        elif attr.type == "string":
            usual = WORDS.get(attr.name) if rng.random() < 0.95 else None
            value.s = (
                usual[int(rng.integers(len(usual)))]
                if usual and not allowed.s
                else bytes(allowed.s[int(rng.integers(len(allowed.s)))])
                if allowed.s
                else values.WORDS[int(rng.integers(len(values.WORDS)))]
            )
        elif attr.type == "list(int)":
            kind = rng.random()
            if kind < 0.5:  # like windows and strides
                value.list.i.extend(
                    [1, *(int(i) for i in rng.integers(1, 4, max(attr.minimum, 4) - 2)), 1]
                )
            else:
                value.list.i.extend(
                    int(i)
                    for i in rng.integers(-1 if kind > 0.95 else 1, 4, int(rng.integers(0, 6)))
                )
            value.list.SetInParent()
        elif attr.type == "list(float)":
            value.list.f.extend(float(f) for f in rng.standard_normal(int(rng.integers(0, 4))))
            value.list.SetInParent()
        elif attr.type == "list(string)":
            value.list.s.extend(
                values.WORDS[int(i)]
                for i in rng.integers(0, len(values.WORDS), int(rng.integers(0, 3)))
            )
            value.list.SetInParent()
        elif attr.type == "shape":
            for d in values.shape(rng, int(rng.integers(0, 4))):
                value.shape.dim.add(size=d)
            value.shape.SetInParent()
        else:
            raise Unsuitable
        return value


def matched(attrs, unknown):
    """Adds the shapes of components, which must match the types.

    Components of datasets have unknown shapes. Those of queues are scalars or unknown.
    """
    for name in attrs.keys() & {"output_shapes", "shapes"}:
        del attrs[name].list.shape[:]
        for _ in kinds.list_types(attrs):
            attrs[name].list.shape.add(unknown_rank=unknown or name == "output_shapes")


def is_number(definition, name):
    """Reports whether an attribute is the number of tensors of an argument."""
    return any(arg.number_attr == name for arg in [*definition.input_arg, *definition.output_arg])


@dataclasses.dataclass
class Slot:
    """An input of a node."""

    name: str  # name of the argument
    kind: object  # key of kinds.KINDS, or None for a tensor
    types: list  # types of its arrays


def slots(definition, attrs):
    """Returns the inputs of a node."""
    out = []
    for arg in definition.input_arg:
        for dtype in dtypes(arg, attrs):
            try:
                kind = kinds.kind_of(definition.name, arg, dtype)
            except KeyError:
                raise Unsuitable from None
            types = [dtype] if kind is None else kinds.KINDS[kind].types(attrs)
            if any(t not in TYPES for t in types):
                raise Unsuitable
            out.append(Slot(arg.name, kind, types))
    return out


def dtypes(arg, attrs):
    """Returns the types of the tensors of an argument."""
    if arg.type_list_attr:
        return list(attrs[arg.type_list_attr].list.type)
    count = attrs[arg.number_attr].i if arg.number_attr else 1
    if count > MAX_INPUTS:
        raise Unsuitable
    return [attrs[arg.type_attr].type if arg.type_attr else arg.type] * max(count, 0)
