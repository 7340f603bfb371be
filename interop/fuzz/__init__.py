"""Random operations with random attributes, shapes and values, on Weft and on TensorFlow: the same result, or the same error
code. `python -m interop.fuzz --help`; the ways in which the two may differ, with the reasons, are in allowed.py."""
