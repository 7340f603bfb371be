"""Kinds of inputs and outputs that are not plain tensors, such as datasets and queues.

Further nodes of the graph create such inputs from arrays and read such outputs.
"""
import dataclasses
import re
from typing import Callable

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2, graph_pb2, types_pb2

from interop.fuzz import allowed, values

READ = 6  # elements to read of a dataset

_TYPE = {name.removeprefix("DT_"): number for name, number in types_pb2.DataType.items()}
RESOURCE, VARIANT = _TYPE["RESOURCE"], _TYPE["VARIANT"]
QUANTIZED = {_TYPE["QINT8"]: _TYPE["INT8"], _TYPE["QUINT8"]: _TYPE["UINT8"], _TYPE["QINT16"]: _TYPE["INT16"], _TYPE["QUINT16"]: _TYPE["UINT16"],
             _TYPE["QINT32"]: _TYPE["INT32"]}  # types of their elements


class Graph:
    """A graph under construction. Nodes in before are control inputs of the node under test."""

    def __init__(self, constant):
        self.proto, self.constant = graph_pb2.GraphDef(), constant
        self.proto.versions.producer = allowed.PRODUCER
        self.feeds, self.before = {}, []

    def array(self, array):
        """Adds a node with a value and returns the name of its output."""
        name = f"in{len(self.proto.node)}"
        node = self.proto.node.add(name=name, op="Const" if self.constant else "Placeholder")
        node.attr["dtype"].type = tf.as_dtype(array.dtype).as_datatype_enum if array.dtype != object else types_pb2.DT_STRING
        if self.constant:
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(array, shape=array.shape))
        else:
            node.attr["shape"].shape.unknown_rank = True
            self.feeds[name + ":0"] = array
        return name

    def const(self, value, dtype):
        """Adds a constant that is needed to create an input."""
        node = self.proto.node.add(name=f"c{len(self.proto.node)}", op="Const")
        node.attr["dtype"].type = dtype
        node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
        return node.name

    def add(self, op, inputs=(), name=None, **attrs):
        node = self.proto.node.add(name=name or f"m{len(self.proto.node)}", op=op, input=inputs)
        for key, value in attrs.items():
            fill(node.attr[key], value)
        return node.name


def fill(value, given):
    """Sets an AttrValue to a data type, bytes, a bool, a shape, or a list of types or shapes."""
    if isinstance(given, attr_value_pb2.AttrValue):
        value.CopyFrom(given)
    elif isinstance(given, bool):
        value.b = given
    elif isinstance(given, bytes):
        value.s = given
    elif isinstance(given, list):
        value.list.SetInParent()
        for item in given:
            if item is None:
                value.list.shape.add(unknown_rank=True)
            elif isinstance(item, tuple):
                shape = value.list.shape.add()
                for d in item:
                    shape.dim.add(size=d)
            else:
                value.list.type.append(item)
    elif given is None:
        value.shape.unknown_rank = True
    elif isinstance(given, tuple):
        value.shape.SetInParent()
        for d in given:
            value.shape.dim.add(size=d)
    elif isinstance(given, Int):
        value.i = int(given)
    else:
        value.type = given


class Int(int):
    """An integer attribute, as opposed to a data type."""


def type_of(array):
    return types_pb2.DT_STRING if array.dtype == object else tf.as_dtype(array.dtype).as_datatype_enum


@dataclasses.dataclass
class Kind:
    """How inputs of one kind are created, and outputs read."""
    types: Callable  # attributes -> types of the arrays
    draw: Callable   # random generator, types, shape -> arrays
    make: Callable   # graph, arrays -> output
    read: Callable = None  # graph, output of this kind, types -> names of outputs
    after: Callable = None  # like read, for an input after the node has run


def _first_type(*names):
    def of(attrs):
        for name in names:
            if name in attrs and attrs[name].type:
                return [attrs[name].type]
        return [types_pb2.DT_FLOAT]
    return of


def list_types(attrs):
    """Returns the types of the components of a dataset or a similar value."""
    for name in ("output_types", "Toutput_types", "Tcomponents", "component_types"):
        if name in attrs:
            return list(attrs[name].list.type)
    return [types_pb2.DT_FLOAT]


def _whole(rng, types, base):
    return [values.numbers(rng, tf.as_dtype(t), base) for t in types]


def _rows(rng, types, base):
    rows = int(rng.choice([0, 1, 2, 3, 5], p=[.05, .1, .25, .4, .2]))
    return [values.numbers(rng, tf.as_dtype(t), (rows, *base[:int(rng.integers(0, 3))])) for t in types]


def _sparse(rng, types, base):
    shape = tuple(int(d) for d in rng.integers(1, 5, 2 if rng.random() < .7 else 3))
    return [values.numbers(rng, tf.as_dtype(types[0]), shape, False) * (rng.random(shape) < .6).astype(tf.as_dtype(types[0]).as_numpy_dtype)]


def _variable(g, arrays, attrs):
    array = arrays[0]
    handle = g.add("VarHandleOp", dtype=type_of(array), shape=array.shape if g.constant else None, shared_name=f"v{len(g.proto.node)}".encode())
    g.before.append(g.add("AssignVariableOp", [handle, g.array(array)], dtype=type_of(array)))
    return handle


def _reference(g, arrays, attrs):
    array = arrays[0]
    variable = g.add("VariableV2", dtype=type_of(array), shape=array.shape if g.constant else None)
    g.before.append(g.add("Assign", [variable, g.array(array)], T=type_of(array), validate_shape=False))
    return variable


def _dataset(g, arrays, attrs):
    return g.add("TensorSliceDataset", [g.array(a) for a in arrays], Toutput_types=[type_of(a) for a in arrays],
                 output_shapes=[None] * len(arrays))


def _read_dataset(g, output, types):
    given = {"output_types": types, "output_shapes": [None] * len(types)}
    some = g.add("TakeDataset", [output, g.const(READ, types_pb2.DT_INT64)], **given)
    batch = g.add("BatchDatasetV2", [some, g.const(READ, types_pb2.DT_INT64), g.const(False, types_pb2.DT_BOOL)], **given)
    whole = g.add("DatasetToSingleElement", [batch], **given)
    return [f"{whole}:{i}" for i in range(len(types))]


def _iterator(g, arrays, attrs):
    types = [type_of(a) for a in arrays]
    iterator = g.add("IteratorV2", shared_name=b"", container=b"", output_types=types, output_shapes=[None] * len(types))
    g.before.append(g.add("MakeIterator", [_dataset(g, arrays, attrs), iterator]))
    return iterator


def _list(g, arrays, attrs):
    return g.add("TensorListFromTensor", [g.array(arrays[0]), g.const(-1, types_pb2.DT_INT32)], element_dtype=type_of(arrays[0]), shape_type=types_pb2.DT_INT32)


def _read_list(g, output, types):
    length = g.add("TensorListLength", [output])
    stack = g.add("TensorListStack", [output, g.const(-1, types_pb2.DT_INT32)], element_dtype=types[0], num_elements=Int(-1))
    return [f"{length}:0", f"{stack}:0"]


def _csr(g, arrays, attrs):
    dense = g.array(arrays[0])
    return g.add("DenseToCSRSparseMatrix", [dense, g.add("Where", [dense], T=type_of(arrays[0]))], T=type_of(arrays[0]))


def _read_csr(g, output, types):
    sparse = g.add("CSRSparseMatrixToSparseTensor", [output], type=types[0])
    return [f"{sparse}:{i}" for i in range(3)]


def _optional(g, arrays, attrs):
    return g.add("OptionalFromValue", [g.array(a) for a in arrays], Toutput_types=[type_of(a) for a in arrays])


def _read_optional(g, output, types):
    value = g.add("OptionalGetValue", [output], output_types=types, output_shapes=[None] * len(types))
    return [f"{value}:{i}" for i in range(len(types))]


def _compressed(g, arrays, attrs):
    return g.add("CompressElement", [g.array(a) for a in arrays], input_types=[type_of(a) for a in arrays])


def _read_compressed(g, output, types):
    element = g.add("UncompressElement", [output], output_types=types, output_shapes=[None] * len(types))
    return [f"{element}:{i}" for i in range(len(types))]


def _ragged(g, arrays, attrs):
    return g.add("RaggedTensorToVariant", [g.array(arrays[0]), g.array(arrays[1])], RAGGED_RANK=Int(1), Tvalues=type_of(arrays[1]), Tsplits=type_of(arrays[0]),
                 batched_input=True)


def _draw_ragged(rng, types, base):
    out = values.numbers(rng, tf.as_dtype(types[1]), (int(rng.integers(1, 7)), *base[:1]))
    splits = np.sort(rng.integers(0, len(out) + 1, int(rng.integers(0, 4))))
    return [np.array([0, *splits, len(out)], tf.as_dtype(types[0]).as_numpy_dtype), out]


def _read_ragged(g, output, types):
    ragged = g.add("RaggedTensorFromVariant", [output], input_ragged_rank=Int(0), output_ragged_rank=Int(1), Tvalues=types[1], Tsplits=types[0])
    return [f"{ragged}:0", f"{ragged}:1"]


def _table(g, arrays, attrs):
    types = {"key_dtype": type_of(arrays[0]), "value_dtype": type_of(arrays[1])}
    table = g.add("MutableHashTableV2", **types, shared_name=f"t{len(g.proto.node)}".encode())
    g.before.append(g.add("LookupTableInsertV2", [table, *map(g.array, arrays)], Tin=type_of(arrays[0]), Tout=type_of(arrays[1])))
    return table


def _table_types(attrs):
    return [*_first_type("Tin", "Tkeys")(attrs), *_first_type("Tout", "Tvalues")(attrs)]


def _draw_table(rng, types, base):
    return [values.numbers(rng, tf.as_dtype(t), (4,)) for t in types]


def _read_table(g, output, types):
    return [g.add("LookupTableSizeV2", [output]) + ":0"]


def _queue(g, arrays, attrs):
    types = [type_of(a) for a in arrays]
    queue = g.add("FIFOQueueV2", component_types=types, shapes=[a.shape[1:] for a in arrays], capacity=Int(-1), shared_name=f"q{len(g.proto.node)}".encode())
    put = g.add("QueueEnqueueManyV2", [queue, *map(g.array, arrays)], Tcomponents=types)
    g.before.append(put)
    if "component_types" in attrs:  # otherwise operations that take elements wait for more
        g.before.append(g.add("QueueCloseV2", [queue, "^" + put]))
    return queue


def _read_queue(g, output, types):
    return [g.add("QueueSizeV2", [output]) + ":0"]


def _map(g, arrays, attrs):
    return g.add("TensorMapInsert", [g.add("EmptyTensorMap"), *map(g.array, arrays)], key_dtype=type_of(arrays[0]), value_dtype=type_of(arrays[1]))


def _read_map(g, output, types):
    size = g.add("TensorMapSize", [output])
    return [size + ":0"]


def _map_types(attrs):
    return [attrs["key_dtype"].type if "key_dtype" in attrs else types_pb2.DT_INT64,
            attrs["value_dtype"].type if "value_dtype" in attrs else types_pb2.DT_FLOAT]


def _tensor_array(g, arrays, attrs):
    array = arrays[0]
    rows = len(array) if array.ndim else 1
    made = g.add("TensorArrayV3", [g.const(rows, types_pb2.DT_INT32)], dtype=type_of(array), dynamic_size=True, clear_after_read=False)
    indices = g.const(np.arange(rows), types_pb2.DT_INT32)
    g.flow = g.add("TensorArrayScatterV3", [made, indices, g.array(array), made + ":1"], T=type_of(array))
    g.before.append(g.flow)
    return made


def _nothing(rng, types, base):
    return []


def _made_by(op, **attrs):
    return Kind(lambda _: [], _nothing, lambda g, arrays, _: g.add(op, **attrs))


def _state(rng, types, base):
    out = rng.integers(-9, 99, int(rng.choice([1, 2, 3, 4], p=[.05, .1, .7, .15])))
    return [out.astype(np.int64)]


KINDS = {
    "variable": Kind(_first_type("dtype", "T"), _whole, _variable, after=lambda g, output, types: [g.add("ReadVariableOp", [output], dtype=types[0]) + ":0"]),
    "state": Kind(lambda _: [types_pb2.DT_INT64], _state, _variable, after=lambda g, output, types: [g.add("ReadVariableOp", [output], dtype=types[0]) + ":0"]),
    "reference": Kind(_first_type("T", "dtype"), _whole, _reference, after=lambda g, output, types: [g.add("Identity", [output], T=types[0]) + ":0"]),
    "dataset": Kind(list_types, _rows, _dataset, _read_dataset),
    "selector": Kind(lambda _: [types_pb2.DT_INT64], lambda rng, *_: [rng.integers(0, 3, int(rng.integers(1, 6)))], _dataset),
    "wrapped": Kind(lambda _: [types_pb2.DT_INT64], _rows, lambda g, arrays, attrs: g.add("WrapDatasetVariant", [_dataset(g, arrays, attrs)])),
    "iterator": Kind(list_types, _rows, _iterator),
    "list": Kind(_first_type("element_dtype"), _rows, _list, _read_list),
    "csr": Kind(_first_type("T", "type"), _sparse, _csr, _read_csr),
    "optional": Kind(list_types, _whole, _optional, _read_optional),
    "compressed": Kind(list_types, _whole, _compressed, _read_compressed),
    "ragged": Kind(lambda a: [a["Tsplits"].type, a["Tvalues"].type], _draw_ragged, _ragged, _read_ragged),
    "table": Kind(_table_types, _draw_table, _table, after=_read_table),
    "queue": Kind(list_types, _rows, _queue, after=_read_queue),
    "map": Kind(_map_types, _whole, _map, _read_map),
    "array": Kind(_first_type("dtype", "T"), _rows, _tensor_array),
    "flow": Kind(lambda _: [], _nothing, lambda g, arrays, _: g.flow),
    "cache": _made_by("DummyMemoryCache"),
    "seeds": _made_by("DummySeedGenerator"),
}
for kind, plain in QUANTIZED.items():
    KINDS[kind] = Kind(lambda _, plain=plain: [plain], _whole,
                       lambda g, arrays, _, kind=kind: g.add("Bitcast", [g.array(arrays[0])], T=type_of(arrays[0]), type=kind),
                       lambda g, output, _, kind=kind, plain=plain: [g.add("Bitcast", [output], T=kind, type=plain) + ":0"])

# Kinds of the resources, variants and references of operations: (operation, argument, kind).
_RULES = [
    (r"^(Stateful|Rng)", r"resource", "state"),
    (r"^Resource(Apply|SparseApply|Scatter|Gather|StridedSlice|CountUpTo)|VariableOp$|^VariableShape$|^VarIsInitializedOp$|^DestroyResourceOp$|^DisableCopyOnRead$",
     r"", "variable"),
    (r"^(Apply|SparseApply|Scatter|Assign|CountUpTo|StridedSliceAssign|RefIdentity|RefSelect|IsVariableInitialized|SdcaShrinkL1)", r"", "reference"),
    (r"^LookupTable.*V2$", r"table_handle", "table"),
    (r"^Queue.*V2$", r"handle", "queue"),
    (r"^TensorArray.*V3$", r"^handle$", "array"),
    (r"^TensorList", r"", "list"),
    (r"^TensorMap", r"", "map"),
    (r"CSRSparseMatrix|^SparseMatrix", r"", "csr"),
    (r"^Iterator(GetNext|GetNextSync|GetNextAsOptional)$", r"iterator", "iterator"),
    (r"^Optional|AsOptional$", r"", "optional"),
    (r"pressElement$", r"", "compressed"),
    (r"^RaggedTensor(From|To)Variant", r"", "ragged"),
    (r"Dataset", r"cache", "cache"),
    (r"Dataset", r"seed_generator", "seeds"),
    (r"Dataset", r"selector", "selector"),
    (r"^UnwrapDatasetVariant$", r"input", "wrapped"),
    (r"^WrapDatasetVariant$", r"output", "wrapped"),
    (r"Dataset|^GetOptions$|^GetElementAtIndex$", r"dataset|^handle$|^output$|^input_handle$|^output_handle$|^components$", "dataset"),
    (r"MemoryCache$", r"", "cache"),
    (r"SeedGenerator$", r"", "seeds"),
]


def kind_of(op, arg, dtype):
    """Returns the kind of an argument, or None for a plain tensor. Raises KeyError if unknown."""
    if arg.is_ref or dtype in (RESOURCE, VARIANT):
        for pattern, name, kind in _RULES:
            if re.search(pattern, op) and re.search(name, arg.name):
                return kind
        raise KeyError(arg.name)
    if arg.name in ("flow_in", "flow_out", "flow") and op.endswith("V3"):
        return "flow"
    return dtype if dtype in QUANTIZED else None
