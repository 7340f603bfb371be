"""A differential fuzzer: random operations must have the same result or error code in both systems.

Attributes, shapes and values are random too. allowed.py lists the differences that are expected,
with their reasons. Run it with python -m interop.fuzz --help.
"""
