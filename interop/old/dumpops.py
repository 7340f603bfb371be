"""Writes the operations or the kernels of a TensorFlow of any release to standard output.

    dumpops.py ops      a serialized OpList
    dumpops.py kernels  one line per operation and type of device

It runs on Python 2.7 and later, in the environment of the release.
"""

from __future__ import print_function

import ctypes
import glob
import os
import re
import sys
import tempfile

import tensorflow as tf

LIBRARIES = ["libtensorflow_framework.so*", "libtensorflow_cc.so*", "python/_pywrap_tensorflow*.so"]
KERNEL = re.compile(r'op: "(\w+)"\s+device_type: "(\w+)"')


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def symbol(name):
    """Returns a function of TensorFlow's libraries."""
    folder = os.path.dirname(tf.__file__)
    if not os.path.exists(os.path.join(folder, "python")):
        folder = os.path.join(os.path.dirname(folder), "tensorflow")
    for root in (folder, folder + "_core"):
        for pattern in LIBRARIES:
            for path in glob.glob(os.path.join(root, pattern)):
                try:
                    return getattr(ctypes.CDLL(path, ctypes.RTLD_GLOBAL), name)
                except (AttributeError, OSError):
                    continue
    raise AttributeError("no library has " + name)


def ops():
    try:
        get = symbol("TF_GetAllOpList")
    except AttributeError:
        return exported_ops()
    get.restype = ctypes.POINTER(Buffer)
    buffer = get().contents
    return ctypes.string_at(buffer.data, buffer.length)


def exported_ops():
    """Returns the operations of a release whose C API cannot list them, by its C++ functions."""
    registry = symbol("_ZN10tensorflow10OpRegistry6GlobalEv")
    registry.restype = ctypes.c_void_p
    op_list = ctypes.create_string_buffer(1 << 12)  # more than sizeof(OpList)
    symbol("_ZN10tensorflow6OpListC1Ev")(op_list)
    export = symbol("_ZNK10tensorflow10OpRegistry6ExportEbPNS_6OpListE")
    export(ctypes.c_void_p(registry()), ctypes.c_bool(True), op_list)
    size = symbol("_ZNK10tensorflow6OpList12ByteSizeLongEv")
    size.restype = ctypes.c_size_t
    out = ctypes.create_string_buffer(size(op_list))
    serialize = symbol("_ZNK10tensorflow6OpList39InternalSerializeWithCachedSizesToArrayEbPh")
    serialize(op_list, ctypes.c_bool(False), out)
    return out.raw


def kernels():
    """TensorFlow logs its kernels to standard error, which a file catches here."""
    log_all = symbol("_ZN10tensorflow23LogAllRegisteredKernelsEv")
    with tempfile.TemporaryFile() as log:
        stderr = os.dup(2)
        os.dup2(log.fileno(), 2)
        try:
            log_all()
        finally:
            os.dup2(stderr, 2)
        log.seek(0)
        text = log.read().decode("utf-8", "replace")
    return "".join(sorted({"%s %s\n" % found for found in KERNEL.findall(text)})).encode()


getattr(sys.stdout, "buffer", sys.stdout).write({"ops": ops, "kernels": kernels}[sys.argv[1]]())
