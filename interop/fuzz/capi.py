"""Sessions of TensorFlow in this process through its C API.

TensorFlow's Python client checks graphs first and would reject most errors itself. Sessions of the
C API accept graphs as a server does.
"""

import ctypes
import os

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import config_pb2
from tensorflow.core.framework import types_pb2

STRING_BYTES = 24  # size of a TF_TString

_FOLDER = os.path.dirname(tf.__file__)
_LIBRARIES = [
    ctypes.CDLL(os.path.join(_FOLDER, name))
    for name in ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
]
_POINTER, _INT, _SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t


def _function(name, result, *arguments):
    function = next(getattr(library, name) for library in _LIBRARIES if hasattr(library, name))
    function.restype, function.argtypes = result, arguments
    return function


_new_status = _function("TF_NewStatus", _POINTER)
_delete_status = _function("TF_DeleteStatus", None, _POINTER)
_code = _function("TF_GetCode", _INT, _POINTER)
_message = _function("TF_Message", ctypes.c_char_p, _POINTER)
_new_options = _function("TF_NewSessionOptions", _POINTER)
_set_config = _function("TF_SetConfig", None, _POINTER, ctypes.c_char_p, _SIZE, _POINTER)
_new_session = _function("TF_NewDeprecatedSession", _POINTER, _POINTER, _POINTER)
_close_session = _function("TF_CloseDeprecatedSession", None, _POINTER, _POINTER)
_delete_session = _function("TF_DeleteDeprecatedSession", None, _POINTER, _POINTER)
_extend = _function("TF_ExtendGraph", None, _POINTER, ctypes.c_char_p, _SIZE, _POINTER)
_run = _function(
    "TF_Run",
    None,
    _POINTER,
    _POINTER,
    _POINTER,
    _POINTER,
    _INT,
    _POINTER,
    _POINTER,
    _INT,
    _POINTER,
    _INT,
    _POINTER,
    _POINTER,
)
_new_tensor = _function("TF_AllocateTensor", _POINTER, _INT, _POINTER, _INT, _SIZE)
_delete_tensor = _function("TF_DeleteTensor", None, _POINTER)
_data = _function("TF_TensorData", _POINTER, _POINTER)
_size = _function("TF_TensorByteSize", _SIZE, _POINTER)
_rank = _function("TF_NumDims", _INT, _POINTER)
_dim = _function("TF_Dim", ctypes.c_int64, _POINTER, _INT)
_type = _function("TF_TensorType", _INT, _POINTER)
_string_init = _function("TF_StringInit", None, _POINTER)
_string_copy = _function("TF_StringCopy", None, _POINTER, ctypes.c_char_p, _SIZE)
_string_data = _function("TF_StringGetDataPointer", _POINTER, _POINTER)
_string_size = _function("TF_StringGetSize", _SIZE, _POINTER)


class Failure(Exception):
    """An error of TensorFlow, with the number of its code."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code, self.text = code, text


class Status:
    """The status of a call."""

    def __enter__(self):
        self.pointer = _new_status()
        return self

    def __exit__(self, *_):
        _delete_status(self.pointer)

    def check(self):
        if _code(self.pointer):
            raise Failure(_code(self.pointer), _message(self.pointer).decode(errors="replace"))


def options():
    """Returns session options without graph optimizers, which would remove nodes that can fail."""
    config = config_pb2.ConfigProto()
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = config_pb2.OptimizerOptions.L0
    data, out = config.SerializeToString(), _new_options()
    with Status() as status:
        _set_config(out, data, len(data), status.pointer)
        status.check()
    return out


def run(options, graph_def, feeds, fetches):
    """Runs a step in a new session. feeds maps names to arrays. Returns arrays."""
    with Status() as status:
        session = _new_session(options, status.pointer)
        status.check()
        try:
            _extend(session, graph_def, len(graph_def), status.pointer)
            status.check()
            return _step(session, feeds, fetches, status)
        finally:
            with Status() as ignored:
                _close_session(session, ignored.pointer)
                _delete_session(session, ignored.pointer)


def _step(session, feeds, fetches, status):
    inputs = (_POINTER * len(feeds))(*map(_tensor, feeds.values()))  # the step deletes them
    outputs = (_POINTER * len(fetches))()
    _run(
        session,
        None,
        _names(feeds),
        inputs,
        len(feeds),
        _names(fetches),
        outputs,
        len(fetches),
        None,
        0,
        None,
        status.pointer,
    )
    try:
        status.check()
        return [_array(tensor) for tensor in outputs]
    finally:
        for tensor in outputs:
            if tensor:
                _delete_tensor(tensor)


def _names(names):
    return (ctypes.c_char_p * len(names))(*(name.encode() for name in names))


def _tensor(array):
    dims = (ctypes.c_int64 * array.ndim)(*array.shape)
    if array.dtype != object:
        array = np.asarray(array, order="C")
        out = _new_tensor(tf.as_dtype(array.dtype).as_datatype_enum, dims, array.ndim, array.nbytes)
        ctypes.memmove(_data(out), array.ctypes.data, array.nbytes)
        return out
    out = _new_tensor(types_pb2.DT_STRING, dims, array.ndim, array.size * STRING_BYTES)
    for i, value in enumerate(array.ravel()):
        at = _data(out) + i * STRING_BYTES
        _string_init(at)
        _string_copy(at, value, len(value))
    return out


def _array(tensor):
    shape = tuple(_dim(tensor, i) for i in range(_rank(tensor)))
    if _type(tensor) != types_pb2.DT_STRING:
        return np.frombuffer(
            ctypes.string_at(_data(tensor), _size(tensor)),
            tf.as_dtype(_type(tensor)).as_numpy_dtype,
        ).reshape(shape)
    out = np.empty(int(np.prod(shape)), object)
    for i in range(out.size):
        at = _data(tensor) + i * STRING_BYTES
        out[i] = ctypes.string_at(_string_data(at), _string_size(at))
    return out.reshape(shape)
