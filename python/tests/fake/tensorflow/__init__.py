"""A package with the parts of TensorFlow that weft_shim deals with."""

from tensorflow.python.training import server_lib as train  # noqa: F401
